/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes the slices of a grant from a pod's annotations and limits; share/pod_grant_write.h is the
 * reverse. The annotations name the cards of a container's slices. The container's limit says how
 * much it holds there: of N units on k cards each card has N/k, and the first ones have the
 * remainder.
 *
 * The amounts in the annotations do not count. They are written for other tools, and the right to
 * create a pod is enough to write them. */

#include "share/ledger.h"
#include "share/request.h"

/* The pod holds nothing: it asks for neither gpu-mem nor whole cards, is not bound, or all its
 * containers have ended. For the last, it must be terminal or a mirror pod under deletion. */
enum { POD_GRANT_E_NONE = 1 };

/* Makes *ret, what a pod holds by its own object. ANNOTATION_ALLOCATION names the cards of the main
 * containers, ANNOTATION_INIT_ALLOCATION those of the init containers and sidecars. If one is
 * absent, empty or malformed, the one card of the older annotation counts. A container with a limit
 * but no card is pending, so *ret may have both slices and pending amounts. Entries for containers
 * without a limit count for nothing.
 *
 * *ret points into pod and arena. Returns 0, POD_GRANT_E_NONE or -ENOMEM. If an annotation or a
 * limit does not decode, the fault says so and 0 is returned. */
int pod_grant_spec(const Pod *pod, Arena *arena, GrantSpec *ret, Fault *fault);

/* Compares the amounts in the annotations of a bound pod with its limits. Returns 0 when they
 * agree, are absent or do not decode, and for pods that hold nothing. Else POD_GRANT_E_DIFFERS with
 * a fault that names annotation, container and both amounts; or -ENOMEM. */
enum { POD_GRANT_E_DIFFERS = 1 };
int pod_grant_compare(const Pod *pod, Arena *arena, Fault *fault);
