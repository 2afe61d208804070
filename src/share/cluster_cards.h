/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the cards of the whole cluster could hold if no pod held anything, for warnings about a
 * request before it is scheduled. Health and fences do not count, because they are temporary. */

#include "share/ledger.h"
#include "share/request.h"

typedef struct ClusterCards {
        size_t n_cards;    /* on nodes in a mode that is served */
        uint32_t unit_mib; /* unit of gpu-mem of these nodes; 0: no node, or different units */
        size_t n_offered;  /* cards of nodes that offer what the request asks for */
        uint32_t largest;  /* most units of one of these */
        bool fits;         /* some node has as many such cards, large enough, as the request wants */
} ClusterCards;

/* Computes them over all nodes. request NULL: only n_cards and unit_mib. */
ClusterCards cluster_cards_of(const Ledger *ledger, const Request *request);

/* Appends a sentence when no node could hold the request: `no card in this cluster has 20 units
 * today, the largest has 15: the pod waits for a larger card`. Nothing is appended while no node
 * shares a card, as before the first node comes. */
void cluster_cards_warn(const Ledger *ledger, const Request *request, Buf *out);

/* Appends a sentence when an entry of the choice names no card of this cluster. Nothing is appended
 * while no node shares a card. The first CLUSTER_ENTRIES_MAX entries are looked up, because each
 * look-up may read all cards. */
enum { CLUSTER_ENTRIES_MAX = 8 };
void cluster_cards_warn_choice(const Ledger *ledger, const CardChoice *choice, Buf *out);
