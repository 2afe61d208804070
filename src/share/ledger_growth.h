/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the ledger charges for growth beyond limits (share/growth.h), beside the grants. These are
 * the entries of the node's annotation, and what the leading scheduler has reserved. Of a slice
 * with both, the larger one is charged. What is above a limit does not depend on the pod's object:
 * processes may run on after it is gone. The agent takes the entry away when they have ended.
 *
 * A card has two sums. New pods are admitted against the larger of limit and charge of each slice
 * (LedgerCard.used). Slices that grow are admitted against the charges, so they may have what
 * another one has given up (ledger_growth_freed()). It counts only beside a grant, whose limit is
 * in the sum. */

#include "base/clock.h"
#include "share/growth.h"
#include "share/ledger.h"

typedef struct LedgerGrowth LedgerGrowth;

/* Puts the entries of the annotation into force in place of the earlier ones. A reservation ends
 * when the annotation's serial reaches that of ledger_growth_settle(). An absent annotation ends
 * none: the watch may be behind, and a later object may have the permit. If the text does not
 * decode, the earlier entries stay. Returns 0, -ENOMEM, or LEDGER_E_NODE with a fault. */
int ledger_growth_set(LedgerNode *n, Str annotation, Fault *fault);

/* The Node object is gone: drops entries and reservations. */
void ledger_growth_drop(LedgerNode *n);

/* The annotation's serial; 0: the node has no annotation, and nothing can grow there. */
uint64_t ledger_growth_serial(const LedgerNode *n);

/* What is charged for a slice above its limit; negative: what it has given up. */
GrowthSize ledger_growth_of(const LedgerNode *n, Str uid, uint32_t container, uint32_t card);

/* What this scheduler has reserved for the slice and the annotation does not show yet. */
GrowthSize ledger_growth_reserved(const LedgerNode *n, Str uid, uint32_t container, uint32_t card);

/* What slices on the card have given up of their limits. A pod with an init container on it counts
 * with nothing: that container needs its limit when the pod's sandbox is created anew. */
GrowthSize ledger_growth_freed(const LedgerNode *n, uint32_t card);

/* Whether the annotation charges a slice of the pod with less than its limit. */
bool ledger_growth_is_below(const LedgerNode *n, Str uid);

/* Reserves the size of the entry for this slice, if the card has room for what is not charged yet.
 * A cordon, fence or fault of the card does not keep a slice from its limit. Returns 0; -ENOMEM; or
 * LEDGER_GROWTH_E_ROOM with a fault that names card, free and missing amount. */
enum { LEDGER_GROWTH_E_ROOM = 1 };
int ledger_growth_reserve(LedgerNode *n, const GrowthEntry *e, Fault *fault);

/* The permit for the pod's reservations is in the annotation from this serial on. They stay charged
 * until the ledger has seen that serial. */
void ledger_growth_settle(LedgerNode *n, Str uid, uint64_t serial);

/* Ends settled reservations that no annotation has shown, once the node has had none for
 * LEDGER_GROWTH_ABSENT: its agent was switched off, and has given the permit back. Returns whether
 * a settled reservation is left: then call it again. now: of a monotonic clock. */
enum { LEDGER_GROWTH_ABSENT = 60 * USEC_PER_SEC };
bool ledger_growth_expire(LedgerNode *n, usec_t now);

/* Ends the reservations of the pod; no permit was written for them. */
void ledger_growth_release(LedgerNode *n, Str uid);

/* Whether the pod has a reservation that is not in the annotation yet. */
bool ledger_growth_is_reserved(const LedgerNode *n, Str uid);

/* Adds what is charged on the card above limits. For tests. */
void ledger_growth_sum(const LedgerNode *n, uint32_t card, uint64_t *mem, uint64_t *core);
