/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls PodResources v1 List: which container of which pod holds which device IDs, by the kubelet.
 * The kubelet limits the rate (100 a second, burst 10, for all clients of the node together). A
 * refused call is repeated until its deadline. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "node/kubelet/pod_list.h"

/* Priority of timers that end the wait for an answer of the kubelet. They run after the I/O, so a
 * process that was stopped beyond its deadline uses an answer that has arrived. */
#define POD_RESOURCES_DEADLINE_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 1)

typedef struct PodResources PodResources;
typedef struct PodResourcesCall PodResourcesCall;

/* Makes a client of the kubelet's List. socket: KUBELET_DIR/pod-resources/kubelet.sock. prefix: as
 * in pod_list_decode(). Returns 0, -ENOMEM or -ENAMETOOLONG. */
int pod_resources_new(sd_event *event, const char *socket, Str prefix, PodResources **ret);
PodResources *pod_resources_free(PodResources *p);

/* Asks for a List that begins after this call; concurrent calls share one. timeout 0: 10 s. `done`
 * is called once, never before this returns, and may ask again, free calls, and free the object.
 * Its list is valid during the callback; NULL means that the deadline passed, and fault says why.
 * The call ends after `done`; freeing it before cancels it. Returns 0 or -ENOMEM. ret may be
 * NULL. */
typedef void (*PodResourcesDone)(void *userdata, const PodList *list, const Fault *fault);
int pod_resources_list(PodResources *p, usec_t timeout, PodResourcesDone done, void *userdata,
                       PodResourcesCall **ret);
PodResourcesCall *pod_resources_call_free(PodResourcesCall *c);

typedef struct PodResourcesCounters {
        uint64_t lists;   /* sent to the kubelet */
        uint64_t limited; /* Lists that the kubelet's rate limit refused, to be repeated */
        uint64_t failed;  /* Lists that failed for good */
} PodResourcesCounters;
PodResourcesCounters pod_resources_counters(const PodResources *p);

DEFINE_CLEANUP(PodResources *, pod_resources_free)
