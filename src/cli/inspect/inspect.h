/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The report of `kubectl inspect cgpu`. It takes objects one at a time and prints them byte for
 * byte as older tools do. Its libraries are linked statically. */

#include "base/buf.h"
#include "base/fault.h"
#include "base/str.h"

typedef struct Inspect Inspect;

int inspect_new(Inspect **ret);
Inspect *inspect_free(Inspect *i);

/* Counts pods of this namespace only. Call it before the first object; `namespace_` must outlive
 * the report. */
void inspect_set_namespace(Inspect *i, Str namespace_);

/* Adds a Node, a Pod, or a ConfigMap that fences cards, in any order; others are ignored.
 * Everything that is kept is copied. A later object replaces an earlier one of the same name. kind:
 * from a typed list; empty: from the object.
 *
 * Returns 0, with a fault when a part of the object was ignored; -ENOMEM; or INSPECT_E_MALFORMED
 * with a fault, and the object is left out. */
enum { INSPECT_E_MALFORMED = 1, INSPECT_E_NO_NODE };
int inspect_add(Inspect *i, Str kind, Str object, Fault *fault);

/* "nodes" where pods and no node were added, "pods" where nodes and no pod were; else NULL. */
const char *inspect_lacks(const Inspect *i);

/* Print for one node, or for all when `node` is empty. They return 0, -ENOMEM, or INSPECT_E_NO_NODE
 * when it is not a sharing node of the cluster. */
int inspect_print_summary(Inspect *i, Str node, Buf *out, Fault *fault);
int inspect_print_details(Inspect *i, Str node, Buf *out, Fault *fault);
int inspect_print_json(Inspect *i, Str node, Buf *out, Fault *fault);

/* Adds what a process holds of a card, in MiB, as the node's agent reports it. Nodes must have been
 * added; other names and indexes are ignored. */
void inspect_add_used(Inspect *i, Str node, uint32_t card, uint64_t mib);

/* The report for a terminal: a row per card, then sums, then notes about nodes. */
typedef struct InspectScreen {
        size_t width;  /* columns */
        size_t height; /* lines that fit, 0: any number. Rows that do not fit are counted */
        bool utf8;     /* bars of block characters */
        bool colour;   /* ECMA-48 colours */
        bool details;  /* also a row per pod and card */
} InspectScreen;
int inspect_print_cards(Inspect *i, Str node, const InspectScreen *screen, Buf *out, Fault *fault);

/* Counts the pods on these nodes with other amounts in annotations than in limits. Returns 0
 * with *ret, or an error as inspect_print_summary(). */
int inspect_count_differences(Inspect *i, Str node, size_t *ret, Fault *fault);

DEFINE_CLEANUP(Inspect *, inspect_free)
