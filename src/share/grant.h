/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A grant: the slices that one pod holds on one node. grant_new() charges the cards of the node,
 * and grant_free() subtracts exactly the same amounts. grant-internal.h has the struct. */

#include "base/buf.h"

struct Ledger;
struct LedgerNode;

typedef struct Grant Grant;

/* One container's part of one card. */
typedef struct Slice {
        uint32_t card;
        uint32_t mem, core; /* units of gpu-mem, percent of compute */
        uint16_t container; /* index in its own list */
        uint8_t kind;       /* ContainerKind */
} Slice;

/* For qsort(): by card, then init containers and sidecars before main containers, then by index. */
int grant_compare_slices(const void *a, const void *b);

/* What grant_new() copies. Pending amounts have no card yet, because another scheduler bound the
 * pod and the node has not chosen: every card of the node is counted as if it held them. */
typedef struct GrantSpec {
        Str namespace_, name, uid;
        Str node; /* the node is added when the ledger does not know it */
        const Slice *slices;
        size_t n_slices;
        uint32_t pending_mem, pending_core;
        bool has_core; /* it asks for compute; for the rule about mixing */
        bool whole;    /* whole cards; they have no shape */
        uint64_t app;  /* as in Request */
        uint32_t cpu;  /* as in Request */
} GrantSpec;

/* Makes a grant and charges it. Returns 0, -ENOMEM, or -E2BIG for 2^16 slices or a text of 2^16
 * bytes. */
int grant_new(struct Ledger *l, const GrantSpec *spec, Grant **ret);

/* Frees a grant and gives its charges back. Not for grants of ledger_node_held(), which end with
 * the node's annotation. Returns NULL. */
Grant *grant_free(Grant *g);

Str grant_namespace(const Grant *g);
Str grant_name(const Grant *g);
Str grant_uid(const Grant *g);
struct LedgerNode *grant_node(const Grant *g);

/* Sorted by grant_compare_slices(). */
const Slice *grant_slices(const Grant *g, size_t *ret_n);

/* What the grant takes from this card at the same time (share/demand.h), at most UINT32_MAX. */
uint32_t grant_mem_on_card(const Grant *g, uint32_t card);
uint32_t grant_core_on_card(const Grant *g, uint32_t card);

uint32_t grant_pending(const Grant *g);
uint32_t grant_pending_core(const Grant *g);
uint32_t grant_cpu(const Grant *g);

/* The next grant of its list (ledger_node_grants() or ledger_node_held()); NULL at the end. */
Grant *grant_next(const Grant *g);
