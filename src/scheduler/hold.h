/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A place on a node's cards that is kept for one pod while its victims leave. It is a grant in the ledger, without a UID:
 * for every other pod the place is taken, in filter, prioritize and bind alike. For the pod itself the callers below look
 * behind it. There is at most one in a cluster (evictor.h). */

#include "share/placement.h"

typedef struct Hold {
        Grant *grant; /* NULL: nothing is held */
        char *uid;    /* of the pod that it is for */
} Hold;

/* Charges the slices of `place` on the node. 0, -ENOMEM, or -E2BIG as grant_new(). Ends an earlier hold. */
typedef struct HoldSpec {
        Str namespace_, name, uid, node;
        bool has_core; /* the pod asks for compute */
} HoldSpec;
int hold_begin(Hold *h, Ledger *ledger, const HoldSpec *spec, const Placement *place);
void hold_end(Hold *h);

/* Is something held for this pod on that node? */
bool hold_is_for(const Hold *h, Str uid, const LedgerNode *node);

/* placement_check() as this pod sees the node: its own hold is no obstacle. Also -ENOMEM. */
int hold_check(const Hold *h, Str uid, const LedgerNode *node, const Request *request, Refusal *ret);

/* placement_choose_cards() likewise; the hold ends when the pod is given cards, which the caller charges before anything else
 * can happen. */
int hold_choose_cards(Hold *h, Str uid, const LedgerNode *node, const Request *request, Arena *arena,
                      Placement *ret, Refusal *ret_refusal);
