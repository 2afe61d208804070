/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the report share. inspect.c collects rows, inspect_view.c sorts them and sums
 * them up, print_summary.c, print_details.c and print_json.c print them. */

#include "base/arena.h"
#include "cli/inspect/inspect.h"
#include "cli/inspect/report_rows.h"

/* An object becomes a row as soon as it is read; pods without a GPU and nodes that share none
 * become nothing. Rows stay in their order of arrival. inspect_view() sorts them, and pods find
 * their node by a merge of the two sorted lists, without an index. */
struct Inspect {
        Arena rows;    /* texts and arrays of the rows */
        Arena scratch; /* of the object being read */
        Arena view;    /* cards of the nodes, made anew for each view */
        InspectNode *nodes;
        size_t n_nodes, nodes_capacity;
        InspectPod *pods;
        size_t n_pods, pods_capacity;
        size_t order;
        bool settled;
};

/* The nodes to print, by name. */
typedef struct InspectView {
        const InspectNode *nodes;
        size_t n_nodes;
        size_t max_cards;
        bool has_pending, has_core, units_differ;
        Str unit_text; /* of the sums */
        /* sums; memory in MiB when the units differ */
        uint64_t total_mem, used_mem, total_core, used_core;
} InspectView;

/* Returns 0, -ENOMEM, or INSPECT_E_NO_NODE. *ret is valid until the next object is added. */
int inspect_view(Inspect *i, Str node, InspectView *ret, Fault *fault);

/* false: the pod is kept only to count its difference, and gets no line. */
bool inspect_pod_holds(const InspectPod *p);

/* Memory of a node in the unit of the view's sums. */
uint64_t inspect_view_mem(const InspectView *v, const InspectNode *n, uint64_t units);

/* Rounded down; 0 when total is 0. */
uint64_t inspect_percent(uint64_t used, uint64_t total);

/* What a pod holds on a card, or zeros. */
InspectUse inspect_pod_use(const InspectPod *p, uint32_t card);
