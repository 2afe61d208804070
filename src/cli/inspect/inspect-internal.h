/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the report share. inspect.c collects rows, inspect_view.c sorts them and sums
 * them up, print_summary.c, print_details.c, print_json.c, print_cards.c, print_pods.c,
 * print_whole.c and print_notes.c print them. */

#include "base/arena.h"
#include "cli/inspect/inspect.h"
#include "cli/inspect/report_rows.h"
#include "share/card_indexes.h"
#include "share/card_state.h"

/* A ConfigMap that takes cards of a node out of service. */
typedef struct InspectFence {
        Str name, node;
        CardIndexes cards;
        size_t order;
} InspectFence;

/* An object becomes a row as soon as it is read; pods without a GPU and nodes that share none
 * become nothing. Rows stay in their order of arrival. inspect_view() sorts them, and pods find
 * their node by a merge of the two sorted lists, without an index. */
struct Inspect {
        Arena rows;    /* texts and arrays of the rows */
        Arena scratch; /* for decoding the current object */
        Arena view;    /* cards of the nodes, made anew for each view */
        InspectNode *nodes;
        size_t n_nodes, nodes_capacity;
        InspectNode *silent; /* nodes without cards to offer, which have notes */
        size_t n_silent, silent_capacity;
        InspectPod *pods;
        size_t n_pods, pods_capacity;
        InspectFence *fences;
        size_t n_fences, fences_capacity;
        Str only_namespace; /* borrowed; empty: all */
        size_t order;
        bool settled;
        bool saw_node, saw_pod; /* of any kind, also without cards */
};

/* The nodes to print, sorted by name. */
typedef struct InspectView {
        const InspectNode *nodes;
        /* n_whole: nodes with whole cards, which are in no sum of memory */
        size_t n_nodes, n_whole;
        size_t max_cards;
        bool has_pending, has_core, units_differ;
        Str unit_text; /* unit of the sums */
        /* sums; memory in MiB when the units differ */
        uint64_t total_mem, used_mem, total_core, used_core;
        uint64_t total_cards, used_cards; /* of nodes with whole cards */
} InspectView;

/* Sorts and sums up the rows. Returns 0, -ENOMEM, or INSPECT_E_NO_NODE. *ret is valid until the
 * next object is added. */
int inspect_view(Inspect *i, Str node, InspectView *ret, Fault *fault);

/* Whether the pod holds slices or waits for a card. false: it is kept only to count its difference,
 * and gets no line. */
bool inspect_pod_holds(const InspectPod *p);

/* The unit behind a number: " GiB", " x128MiB". */
#define INSPECT_UNIT_FMT " %s" STR_FMT
#define INSPECT_UNIT_ARG(n)                                                                                  \
        (n)->unit_text.len > 0 && (n)->unit_text.data[0] <= '9' ? "x" : "", STR_CUT((n)->unit_text, 32)

/* Appends a row per pod and card, after an empty line; nothing where no pod holds a slice. Returns
 * 0 or -ENOMEM. */
int inspect_print_pods(const InspectView *v, const InspectScreen *screen, Buf *out);

/* Appends the notes of the view's nodes, and, where it has all nodes, of the silent ones: equal
 * notes once, folded to the width. details: also the pods with annotations that differ from their
 * limits. Returns 0 or -ENOMEM. */
int inspect_print_notes(const Inspect *i, const InspectView *v, bool all, const InspectScreen *screen,
                        Buf *out);

/* Appends name and address of a node, between empty lines. */
void inspect_put_header(const InspectNode *n, bool with_unit, Buf *text);

/* Appends "Allocated/Total WHAT In Cluster:", `between`, and the numbers with their percentage. */
void inspect_put_share(const char *what, const char *between, uint64_t used, uint64_t total, Buf *text);

/* Append the nodes with whole cards, if there are any, after an empty line, and their sums. Each
 * node has a line, or with details a table of its cards and one of their links. links: only the
 * latter. Return 0 or -ENOMEM. */
int inspect_print_whole(const InspectView *v, bool details, Buf *out);
int inspect_print_links(const InspectView *v, Buf *out);

/* Appends, after a node's table, a line for each pod with annotations that differ from its limits;
 * usually none. */
void inspect_put_differences(const InspectNode *n, Buf *text);

/* Returns what keeps new slices off a card, as the scheduler judges it. */
CardState inspect_card_state(const InspectNode *n, size_t card);

/* Appends a line with the node's cards that take no new slices, and why: "n1: GPU0, GPU2 fenced;
 * GPU1 cordoned". Nothing when there are none. */
void inspect_put_states(const InspectNode *n, Buf *text);

/* Converts units of a node to the unit of the view's sums. */
uint64_t inspect_view_mem(const InspectView *v, const InspectNode *n, uint64_t units);

/* Returns used as percent of total, rounded down; 0 when total is 0. */
uint64_t inspect_percent(uint64_t used, uint64_t total);

/* Returns what a pod holds on a card, or zeros. */
InspectUse inspect_pod_use(const InspectPod *p, uint32_t card);
