/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* PodResources v1 List: which container of which pod the kubelet thinks holds which device IDs. The
 * socket is rate limited (100 a second, burst 10, shared by all clients of the node): a call that
 * is turned away is repeated until its deadline. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "node/kubelet/pod_list.h"

typedef struct PodResources PodResources;
typedef struct PodResourcesCall PodResourcesCall;

/* socket: KUBELET_DIR/pod-resources/kubelet.sock. 0 or -ENOMEM, -ENAMETOOLONG. */
int pod_resources_new(sd_event *event, const char *socket, Str prefix, PodResources **ret);
PodResources *pod_resources_free(PodResources *p);

/* list: NULL when it could not be had before the deadline (timeout 0: 10 s); fault says why. Views,
 * valid during the callback, of a List that began after this call; askers at the same time share
 * one. Told once, never before this returns, and may ask again, free calls, and free the object.
 * The call is gone behind `done`; freeing it before cancels it. 0 or -ENOMEM; ret may be NULL. */
typedef void (*PodResourcesDone)(void *userdata, const PodList *list, const Fault *fault);
int pod_resources_list(PodResources *p, usec_t timeout, PodResourcesDone done, void *userdata,
                       PodResourcesCall **ret);
PodResourcesCall *pod_resources_call_free(PodResourcesCall *c);

typedef struct PodResourcesCounters {
        uint64_t lists;   /* sent to the kubelet */
        uint64_t limited; /* of them turned away by its rate limit */
        uint64_t failed;  /* of them answered otherwise than well, for good */
} PodResourcesCounters;
PodResourcesCounters pod_resources_counters(const PodResources *p);

DEFINE_CLEANUP(PodResources *, pod_resources_free)
