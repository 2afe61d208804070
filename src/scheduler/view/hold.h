/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cards of a node that are reserved for one pod while its victims leave. The hold is a grant
 * without a UID in the ledger: filter, prioritize and bind count it as taken. It does not block its
 * own pod. Nor does it block a pod of higher priority, which ends it if the node has no other card.
 * There is at most one in a cluster (evictor.h). */

#include "share/placement.h"

typedef struct Hold {
        Grant *grant; /* NULL: nothing is held */
        char *uid;    /* UID of the pod that it is for */
        int64_t priority;
        /* Called before the cards are given back: the node gets room. May be NULL. */
        void (*on_room)(void *userdata, Str node);
        void *userdata;
} Hold;

/* Charges the slices of the placement on the node, and ends an earlier hold. 0, -ENOMEM, or -E2BIG
 * as grant_new(). */
typedef struct HoldSpec {
        Str namespace_, name, uid, node;
        int64_t priority;
        bool has_core; /* the pod asks for compute */
        bool whole;    /* whole cards */
        uint32_t cpu;  /* as in Request */
} HoldSpec;
int hold_begin(Hold *h, Ledger *ledger, const HoldSpec *spec, const Placement *placement);
void hold_end(Hold *h);

/* The pod for which cards are looked for. */
typedef struct HoldAsker {
        Str uid;
        int64_t priority; /* INT64_MIN: not known */
} HoldAsker;

/* Whether cards are held on that node and this pod may have them. */
bool hold_yields_to(const Hold *h, const HoldAsker *asker, const LedgerNode *node);

/* placement_check() as this pod sees the node: cards that it may have count as free. Also
 * -ENOMEM. */
int hold_check(const Hold *h, const HoldAsker *asker, const LedgerNode *node, const Request *request,
               Refusal *ret);

/* placement_choose_cards() as this pod sees the node; also -ENOMEM. The hold ends when its pod, or
 * with its cards one of higher priority, is given cards. The caller charges the chosen cards at
 * once. */
int hold_choose_cards(Hold *h, const HoldAsker *asker, const LedgerNode *node, const Request *request,
                      Arena *arena, Placement *ret, Refusal *ret_refusal);
