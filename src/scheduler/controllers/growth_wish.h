/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a pod asks for beyond its limits, or wants back of limits that it has given up. Whether a
 * ResourceQuota forbids it, what the ledger charges for it, and how its permit is written. No
 * I/O. */

#include "share/growth.h"
#include "share/ledger.h"

/* The texts of the pod's two annotations (share/resize_request.h). */
typedef struct GrowthWish {
        Str mem, core;
} GrowthWish;

/* Makes the entries that would permit what the annotations ask for, one for each slice of a main
 * container; without annotations, the limits. *ret_n is 0 when the annotations cannot be read; the
 * node's agent reports that. The entries live in the arena, their UID in the grant. Returns 0 or
 * -ENOMEM. */
int growth_wish_entries(const Grant *grant, const GrowthWish *wish, Arena *arena, GrowthEntry **ret,
                        size_t *ret_n);

/* Whether the scheduler may have to permit something to the pod: it has an annotation, or has given
 * up a part of its limits. */
bool growth_wish_is_one(const Grant *grant, const GrowthWish *wish);

/* Finds the first ResourceQuota in this list of the API server that names a resource which is to
 * grow (mem: gpu-mem, core: gpu-core). *ret_name: its name, or empty. Returns 0,
 * GROWTH_WISH_E_MALFORMED with a fault, or -ENOMEM. */
enum { GROWTH_WISH_E_MALFORMED = 1 };
int growth_wish_quota(Str list, bool mem, bool core, Arena *arena, Str *ret_name, Fault *fault);

/* Whether the ledger charges these sizes already. */
bool growth_wish_is_charged(const LedgerNode *n, const GrowthEntry *entries, size_t count);

/* Whether an entry is above its limit and beyond what is charged, in memory (*ret_mem) and compute
 * (*ret_core). */
void growth_wish_beyond(const LedgerNode *n, const GrowthEntry *entries, size_t count, bool *ret_mem,
                        bool *ret_core);

/* Whether a slice of the grant is on a card of the entries. */
bool growth_wish_shares_card(const Grant *grant, const GrowthEntry *entries, size_t count);

/* Reserves all entries or none in the ledger. Returns what ledger_growth_reserve() does. */
int growth_wish_reserve(LedgerNode *n, const GrowthEntry *entries, size_t count, Fault *fault);

/* Raises the entries of the node's annotation to what is reserved for the pod. Charges that the
 * ledger has merely read are left as they are: the agent may have lowered them since. Returns the
 * number of raised entries, -E2BIG when the node has GROWTH_MAX entries, or -ENOMEM. */
int growth_wish_raise(const Grant *grant, Arena *arena, Growth *growth);

/* Appends the merge patch that writes the annotation of a node with this resourceVersion. */
void growth_wish_patch(const Growth *growth, Str version, Buf *out);
