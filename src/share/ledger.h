/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The table of nodes, with everything that pods hold on their cards (grant.h).
 *
 * The ledger holds what is true, not what is allowed. Grants read from annotations are charged even
 * where they exceed a card, contradict the node or name a card that it does not have, because those
 * containers run. Only placement refuses. A node asserts when it is freed that its sums are zero.
 * One thread; no clock; no I/O. */

#include "share/ledger_node.h"
#include "share/node_order.h"

typedef struct Ledger Ledger;

int ledger_new(Ledger **ret);   /* 0 or -ENOMEM */
Ledger *ledger_free(Ledger *l); /* frees also the grants that are left */

/* The order is NODE_ORDER_BINPACK at first. */
void ledger_set_order(Ledger *l, NodeOrder order);
NodeOrder ledger_order(const Ledger *l);

/* NULL for a node without Node object, grants, cpu of other pods and fences. */
LedgerNode *ledger_node_find(const Ledger *l, Str name);

/* All nodes, in no stable order: i from 0 to ledger_n_nodes() - 1. */
size_t ledger_n_nodes(const Ledger *l);
LedgerNode *ledger_node_at(const Ledger *l, size_t i);

/* Prefetches the data that placement reads first of these nodes, all at once, before placement is
 * asked about each. NULLs are passed over. */
void ledger_prefetch(LedgerNode *const *nodes, size_t n);

DEFINE_CLEANUP(Ledger *, ledger_free)
