/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a pod asks for above its limits, or of what it has given up. Whether a ResourceQuota stands
 * against it, what the ledger charges for it, and how a permit is written. No I/O. */

#include "share/growth.h"
#include "share/ledger.h"

/* The two annotations of a pod (share/resize_request.h). */
typedef struct GrowthWish {
        Str mem, core;
} GrowthWish;

/* The entries that would permit what the annotations ask for, one for each slice of a main
 * container; without annotations, the limits. No entry: the annotations cannot be read, which the
 * node's agent reports. The entries live in the arena, and their UID in the grant. 0 or -ENOMEM. */
int growth_wish_entries(const Grant *grant, const GrowthWish *wish, Arena *arena, GrowthEntry **ret,
                        size_t *ret_n);

/* Whether the scheduler may have to permit what the pod asks for: it asks for a size, or has given
 * up a part of its limits. */
bool growth_wish_is_one(const Grant *grant, const GrowthWish *wish);

/* The name of the first ResourceQuota in this list of the API server that names a resource which
 * grows (mem: gpu-mem, core: gpu-core); empty: none does. 0, GROWTH_WISH_E_MALFORMED with a fault,
 * or -ENOMEM. */
enum { GROWTH_WISH_E_MALFORMED = 1 };
int growth_wish_quota(Str list, bool mem, bool core, Arena *arena, Str *ret_name, Fault *fault);

/* Whether the ledger charges these sizes already. */
bool growth_wish_is_charged(const LedgerNode *n, const GrowthEntry *entries, size_t count);

/* What of the entries is above a limit and not charged yet: mem, core. */
void growth_wish_beyond(const LedgerNode *n, const GrowthEntry *entries, size_t count, bool *ret_mem,
                        bool *ret_core);

/* Whether a slice of the grant is on a card of the entries. */
bool growth_wish_shares_card(const Grant *grant, const GrowthEntry *entries, size_t count);

/* Reserves all of them or none, as ledger_growth_reserve(). */
int growth_wish_reserve(LedgerNode *n, const GrowthEntry *entries, size_t count, Fault *fault);

/* Raises the node's entries to what is reserved for the pod. What the ledger has only seen is left
 * as it is: the watch may be behind the agent, which has lowered it. Returns how many were lower,
 * -E2BIG: the node has GROWTH_MAX entries, or -ENOMEM. */
int growth_wish_raise(const Grant *grant, Arena *arena, Growth *growth);

/* The merge patch of a node that was read with this resourceVersion. */
void growth_wish_patch(const Growth *growth, Str version, Buf *out);
