/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The annotations that a pod gets with its slices. share/pod_grant.h reads them back. */

#include "share/ledger_node.h"
#include "wire/annotation.h"

/* Appends the JSON object of the annotations for a pod that was given `slices` on `node`. Besides
 * the allocation annotations, a pod on one card gets the older ones (ANNOTATION_OLD_*); on a node
 * of whole cards the pod gets lists of cards instead. Compute of init containers is not written:
 * readers take it from their limits.
 *
 * assume_time_nsec: realtime. carried: pod_system_keys() of the pod now. Each of these keys that
 * gets no value is written empty, which reads as absent, because a Binding cannot remove a key.
 * With n_slices 0 only these are written. If memory is out, `out` is broken. */
void pod_grant_write(const Slice *slices, size_t n_slices, const LedgerNode *node, bool assigned,
                     uint64_t assume_time_nsec, uint32_t carried, Buf *out);

/* The same for a pod of a job of whole cards. job[i]: another pod of the job has card i of this
 * node. */
void pod_grant_write_of_job(const Slice *slices, size_t n_slices, const LedgerNode *node,
                            uint64_t assume_time_nsec, uint32_t carried,
                            const bool job[static CARD_INDEX_MAX + 1], Buf *out);
