/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node that is nearest to taking a pod, with its reason. The cards that come nearest to what it
 * asks for, among nodes that refuse it for their cards. The Event on the pod that names both: the
 * reasons of filter name no card, because equal reasons must be equal. */

#include "base/buf.h"
#include "share/card_lack.h"
#include "share/refusal_reason.h"

enum { NEAREST_MAX = 5 };

typedef struct NearestCard {
        const LedgerNode *node;
        const LedgerCard *card;
        CardLack lack;
        uint64_t distance; /* of the card, or of its node where that is farther */
} NearestCard;

typedef struct Nearest {
        Str node; /* the nearest; of equal ones the first by name. Empty: no node was refused */
        uint64_t distance;
        RefusalReason reason;           /* of that node */
        NearestCard cards[NEAREST_MAX]; /* the nearest first; equal ones by node and card */
        size_t n;
} Nearest;

/* Looks at a node that does not take the request. name: a view. node: NULL where the ledger has
 * none. True: it is the nearest so far. */
bool nearest_add(Nearest *n, Str name, const LedgerNode *node, const Request *request,
                 const Refusal *refusal);

/* Appends what people are told of the pod's nearest node and cards. */
void nearest_format(const Nearest *n, const Request *request, Str namespace_, Str name, Buf *out);
