/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node that comes nearest to taking a pod, and the cards that do, for one Event on the pod.
 * filter's own reasons name no card, because kube-scheduler must be able to count equal ones. */

#include "base/buf.h"
#include "share/card_lack.h"
#include "share/refusal_reason.h"

enum { NEAREST_MAX = 5 };

typedef struct NearestCard {
        const LedgerNode *node;
        const LedgerCard *card;
        CardLack lack;
        uint64_t distance; /* that of the card (card_lack_distance()), or of its node if that is greater */
} NearestCard;

typedef struct Nearest {
        Str node; /* the nearest; of equal ones the first by name. Empty: no node was refused */
        uint64_t distance;
        RefusalReason reason;           /* why it refuses the pod */
        NearestCard cards[NEAREST_MAX]; /* sorted by distance, node and index */
        size_t n;
} Nearest;

/* Takes a node that refuses the request into account. name is not copied. node: NULL if the ledger
 * has no such node. Returns whether it is the nearest so far. */
bool nearest_add(Nearest *n, Str name, const LedgerNode *node, const Request *request,
                 const Refusal *refusal);

/* Appends the text of the Event: the pod's nearest node and cards. namespace_, name: of the pod. */
void nearest_format(const Nearest *n, const Request *request, Str namespace_, Str name, Buf *out);
