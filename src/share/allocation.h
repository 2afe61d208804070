/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between a pod's annotations and the ledger's slices, both ways. */

#include "share/ledger.h"
#include "share/request.h"

/* The pod holds nothing: not ours, not bound, or terminal with its containers ended. */
enum { POD_GRANT_E_NONE = 1 };

/* What a pod holds by its own object: annotations in the current form when they decode to something, else the
 * older form, else everything pending. Fault is set (and 0 returned) when an annotation had to be passed
 * over. The spec points into pod and arena. Returns 0, POD_GRANT_E_NONE or -ENOMEM. */
int grant_spec_from_pod(const Pod *pod, Arena *arena, GrantSpec *ret, Fault *fault);

/* metadata.annotations for a pod that was given `slices` on `node`, as a JSON object, in both forms (the older one
 * for single-card pods only): CONTRACT section 4. Compute of init containers is not written: their limits say it. */
void grant_annotations_write(const Slice *slices, size_t n_slices, const LedgerNode *node, bool assigned,
                             uint64_t assume_time_nsec, Buf *out);
