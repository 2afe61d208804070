/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the three printers print from: rows reduced to what they need, sorted and summed up by
 * inspect_view().
 */

#include "base/arena.h"
#include "cli/inspect/inspect.h"

typedef struct InspectUse {
        uint32_t card;
        uint64_t mem, core; /* units and percent */
} InspectUse;

typedef struct InspectPod {
        Str node, namespace_, name;
        InspectUse *uses; /* by card */
        size_t n_uses;
        uint64_t pending_mem, pending_core; /* has no card yet */
        Str difference;                     /* between annotations and limits, in words; empty: none */
        size_t order;                       /* of arrival: an object that comes again replaces itself */
} InspectPod;

typedef struct InspectCard {
        uint64_t total_mem, used_mem; /* units */
        uint64_t total_core, used_core;
} InspectCard;

typedef struct InspectNode {
        Str name, ip;
        Str unit_text; /* "GiB", "128MiB" */
        uint32_t unit_mib;
        uint64_t total_mem, total_core; /* allocatable */
        uint64_t *card_units;           /* by card index, as the node describes them */
        size_t n_described;
        size_t order;

        /* set when the view is made */
        const InspectPod *pods;
        size_t n_pods;
        InspectCard *cards; /* those it has, and those that pods on it claim */
        size_t n_cards;
        uint64_t used_mem, pending_mem, used_core, pending_core; /* used includes pending */
} InspectNode;

/* Objects of 4 KiB become rows of some hundred bytes the moment they are read; pods that have
 * nothing of a GPU and nodes that share none become nothing. Rows are kept as they come. Only when
 * a view is asked for are they sorted, and pods find their node by a merge of the two sorted lists,
 * so that there is no index to keep. */
struct Inspect {
        Arena rows;    /* texts and arrays of what is kept */
        Arena scratch; /* of the object being read */
        Arena view;    /* cards of the nodes, remade with each view */
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
        Str unit_text;                                       /* of the sums */
        uint64_t total_mem, used_mem, total_core, used_core; /* sums; memory in MiB when the units differ */
} InspectView;

/* 0, -ENOMEM, or INSPECT_E_NO_NODE. Valid until the next object is added. */
int inspect_view(Inspect *i, Str node, InspectView *ret, Fault *fault);

/* A pod that is kept for its difference alone holds nothing, and has no line. */
bool inspect_pod_holds(const InspectPod *p);

/* Memory of a node in the unit of the view's sums. */
uint64_t inspect_view_mem(const InspectView *v, const InspectNode *n, uint64_t units);

/* Truncated; 0 of nothing is 0 %. */
uint64_t inspect_percent(uint64_t used, uint64_t total);

/* What a pod has on a card; zeros where it has nothing. */
InspectUse inspect_pod_use(const InspectPod *p, uint32_t card);
