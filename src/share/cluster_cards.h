/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the cards of the whole cluster could hold if no pod held anything: for what is said about a
 * request before it is scheduled. Health and fences do not count, because they pass. */

#include "share/ledger.h"
#include "share/request.h"

typedef struct ClusterCards {
        size_t n_cards;    /* of nodes in a mode that shares memory */
        uint32_t unit_mib; /* of these nodes; 0: there is none, or their units differ */
        size_t n_offered;  /* cards of nodes that offer what the request asks for */
        uint32_t largest;  /* units of the largest of these */
        bool fits;         /* a node has as many of these cards as the request wants, large enough */
} ClusterCards;

/* request: NULL asks for the first two fields alone. */
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
