/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between a pod's annotations and the ledger's slices, both ways. The annotations say on which
 * cards a container's slices are. How much it holds there is the container's limit: N units over
 * the k cards that are named for it are N/k on each, and what does not divide goes to the first
 * ones. The amounts in the annotations are written for other tools and are not counted, because any
 * user who can create a pod can write them. */

#include "share/ledger.h"
#include "share/request.h"

/* The pod holds nothing: it asks for no gpu-mem, is not bound, or is terminal with its containers
 * ended. */
enum { POD_GRANT_E_NONE = 1 };

/* What a pod holds by its own object. ANNOTATION_ALLOCATION places the main containers and
 * ANNOTATION_INIT_ALLOCATION the init containers and sidecars; where one of them is absent, empty
 * or malformed, the older form's one card does. A container with a limit that none of them places
 * is pending, so that *ret may have slices and pending amounts. Entries for containers without a
 * limit count nothing. The fault gets words, and 0 is returned all the same, when an annotation or
 * a limit does not decode. The spec points into pod and arena. Returns 0, POD_GRANT_E_NONE or
 * -ENOMEM. */
int grant_spec_from_pod(const Pod *pod, Arena *arena, GrantSpec *ret, Fault *fault);

/* Compares the amounts in the annotations of a bound pod with its limits. Returns 0 when they
 * agree, are absent or do not decode, and for pods that hold nothing any more; ALLOCATION_E_DIFFERS
 * with a fault that names annotation, container and both amounts; or -ENOMEM. */
enum { ALLOCATION_E_DIFFERS = 1 };
int allocation_compare(const Pod *pod, Arena *arena, Fault *fault);

/* metadata.annotations for a pod that was given `slices` on `node`, as a JSON object, in both forms
 * (the older one for single-card pods only). Compute of init containers is not written: their
 * limits say it. carried: pod_system_keys() of the pod as it is now; a key of these that gets no
 * value here is written empty, which reads as absent, because a Binding and a patch only add.
 * n_slices 0 writes nothing but that. Lack of memory makes `out` broken. */
void grant_annotations_write(const Slice *slices, size_t n_slices, const LedgerNode *node, bool assigned,
                             uint64_t assume_time_nsec, uint32_t carried, Buf *out);
