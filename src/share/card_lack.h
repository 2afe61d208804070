/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a card lacks for one more pod, rule by rule. placement.h takes exactly the cards that lack
 * nothing, which test-property.c checks. */

#include "share/card_state.h"
#include "share/ledger.h"
#include "share/request.h"

typedef struct CardLack {
        uint32_t mem, core; /* missing amounts: units, percent */
        bool too_small;     /* it would lack memory even without pods */
        bool fenced;        /* a ConfigMap takes it out of service (ledger_node_set_fenced) */
        bool cordoned;      /* an annotation of the node keeps new slices from it (ANNOTATION_CORDON_CARDS) */
        bool unhealthy;     /* its agent reports it as unhealthy, or does not report it */
        bool full;          /* it has as many pods as max-pods-per-card allows */
        bool not_chosen;    /* the pod's annotations do not allow it (share/card_choice.h) */
} CardLack;

CardLack card_lack_of(const LedgerNode *node, const LedgerCard *card, const Request *request);
bool card_lack_is_none(const CardLack *lack);

/* What keeps every new slice from the card, whatever the pod asks for. */
CardState card_lack_state(const LedgerNode *node, const LedgerCard *card);

/* card_lack_distance() is below 1 << 40; card_lack_node_distance() has the kind of refusal above
 * it. */
enum { CARD_LACK_STEP_BIT = 40 };

/* How near the card is to taking the request; smaller is nearer, 0: it lacks nothing. Missing
 * amounts count by their share of the request. Cards with too many pods are farther, and those out
 * of service or not chosen are the farthest. */
uint64_t card_lack_distance(const CardLack *lack, const Request *request);

/* How near a node that refuses the request is to taking it: smaller is nearer. A node that
 * waits for the pod's gang comes first. Next are nodes where other pods
 * have to go away, by what their cards lack; then those whose cards are out of service; then those
 * that wait for a change. Nodes that can never take the pod as they are come last. Of a request for
 * several cards, the worst of the nearest as many cards counts. node: NULL where none is known. */
uint64_t card_lack_node_distance(const LedgerNode *node, const Request *request, const Refusal *refusal);

/* Appends what is free: `9 of 15 GiB and 20 of 100 percent free`; percent only if it is asked
 * for. */
void card_lack_format_free(const LedgerNode *node, const LedgerCard *card, const Request *request, Buf *out);

/* Appends the rules, with semicolons between them: `memory: 1 GiB missing; percent: 10 missing`.
 * Nothing when nothing is missing. */
void card_lack_format(const CardLack *lack, const LedgerNode *node, const LedgerCard *card, Buf *out);
