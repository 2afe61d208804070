/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* PodResources v1 List: which container of which pod the kubelet thinks holds which device IDs. The
 * socket is rate limited (100 a second, burst 10, shared by all clients of the node): a call that
 * is turned away is repeated until its deadline. */

#include <systemd/sd-event.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"

/* IDs of one resource held by one container; the kubelet's one entry per ID is merged here. */
typedef struct HeldDevices {
        Str resource;
        Str *ids;
        size_t n;
} HeldDevices;

typedef struct ListedContainer {
        Str name;
        HeldDevices *devices;
        size_t n_devices;
} ListedContainer;

typedef struct ListedPod {
        Str namespace_, name;
        ListedContainer *containers; /* main ones and sidecars; ordinary init containers are never listed */
        size_t n_containers;
} ListedPod;

typedef struct PodList {
        ListedPod *pods;
        size_t n;
} PodList;

/* The message alone, as views of it; resources outside `prefix` ("aliyun.com/") are left out.
 * Refused are also more than 16,384 pods, 65,536 containers, 600,000 IDs, or 32 resources of one
 * container. 0, PODLIST_E_MALFORMED, -ENOMEM. */
enum { PODLIST_E_MALFORMED = 1 };
int pod_list_decode(Str message, Str prefix, Arena *arena, PodList *ret, Fault *fault);

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
