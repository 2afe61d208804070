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
int pod_grant_spec(const Pod *pod, Arena *arena, GrantSpec *ret, Fault *fault);

/* Compares the amounts in the annotations of a bound pod with its limits. Returns 0 when they
 * agree, are absent or do not decode, and for pods that hold nothing any more; POD_GRANT_E_DIFFERS
 * with a fault that names annotation, container and both amounts; or -ENOMEM. */
enum { POD_GRANT_E_DIFFERS = 1 };
int pod_grant_compare(const Pod *pod, Arena *arena, Fault *fault);
