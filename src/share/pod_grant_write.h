/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The annotations that a pod gets with its slices. share/pod_grant.h reads them back. */

#include "share/ledger_node.h"
#include "wire/annotation.h"

/* metadata.annotations for a pod that was given `slices` on `node`, as a JSON object, in both
 * forms; the older one for single-card pods only. Compute of init containers is not written: their
 * limits say it.
 *
 * carried: pod_system_keys() of the pod as it is now. A key of these that gets no value here is
 * written empty, which reads as absent, because a Binding and a patch cannot remove a key. With
 * n_slices 0 nothing else is written. Lack of memory makes `out` broken. */
void pod_grant_write(const Slice *slices, size_t n_slices, const LedgerNode *node, bool assigned,
                     uint64_t assume_time_nsec, uint32_t carried, Buf *out);

/* The same for a pod of a job of whole cards. job: by card index, the cards that the other pods of
 * the job have on this node. */
void pod_grant_write_of_job(const Slice *slices, size_t n_slices, const LedgerNode *node,
                            uint64_t assume_time_nsec, uint32_t carried,
                            const bool job[static CARD_INDEX_MAX + 1], Buf *out);
