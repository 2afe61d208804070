/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* From a pod's annotations and limits to the slices of its grant. share/pod_grant_write.h is the
 * way back. The annotations say on which cards a container's slices are. The container's limit says
 * how much it holds there: of N units over k cards each card has N/k, and the first ones have what
 * does not divide.
 *
 * The amounts in the annotations are not counted. They are written for other tools, and the right
 * to create a pod is enough to write them. */

#include "share/ledger.h"
#include "share/request.h"

/* The pod holds nothing: it asks for no gpu-mem, is not bound, or is terminal with its containers
 * ended. */
enum { POD_GRANT_E_NONE = 1 };

/* What a pod holds by its own object. ANNOTATION_ALLOCATION names the cards of the main containers,
 * and ANNOTATION_INIT_ALLOCATION those of the init containers and sidecars. Where one of them is
 * absent, empty or malformed, the one card of the older form counts. A container with a limit and
 * no card is pending, so that *ret may have slices and pending amounts. Entries for containers
 * without a limit count nothing.
 *
 * The spec points into pod and arena. Returns 0, POD_GRANT_E_NONE or -ENOMEM. When an annotation or
 * a limit does not decode, the fault says so and 0 is returned. */
int pod_grant_spec(const Pod *pod, Arena *arena, GrantSpec *ret, Fault *fault);

/* Compares the amounts in the annotations of a bound pod with its limits. Returns 0 when they
 * agree, are absent or do not decode, and for pods that hold nothing. Else POD_GRANT_E_DIFFERS with
 * a fault that names annotation, container and both amounts; or -ENOMEM. */
enum { POD_GRANT_E_DIFFERS = 1 };
int pod_grant_compare(const Pod *pod, Arena *arena, Fault *fault);
