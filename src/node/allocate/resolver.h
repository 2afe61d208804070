/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who is calling Allocate? The kubelet's calls name devices, not pods. But GetPreferredAllocation
 * and Allocate are strictly serial on a node, and while the first is open the kubelet's own
 * PodResources List already shows the pod that is being admitted: it is the one whose container
 * still lacks this resource (docs/internals/identity.md has the measurements). So the question is settled
 * there: pod, container, its cards by annotation; the answer is devices of these cards. Allocate
 * follows at once and reads the card from the devices.
 *
 * An error here is final for the pod, and its controller makes the next one at once: it is never
 * used to say "wait". */

#include "kube/client.h"
#include "node/allocate/pod_patcher.h"
#include "node/isolation/isolation.h"
#include "node/kubelet/plugin.h"
#include "node/kubelet/pod_resources.h"
#include "node/records/records.h"

typedef enum DeviceAccess {
        DEVICE_ACCESS_CDI,     /* CDI devices of our own specification */
        DEVICE_ACCESS_RUNTIME, /* NVIDIA_VISIBLE_DEVICES alone: the nvidia runtime does the rest */
} DeviceAccess;

typedef struct Resolver Resolver;

typedef struct ResolverOptions {
        sd_event *event; /* all of these outlive it */
        Roster *roster;
        Records *records;
        const Inventory *inventory;
        PodResources *pod_resources;
        KubeClient *client;
        PodPatcher *pod_patcher;
        const Isolation *isolation; /* NULL: none */
        DeviceAccess access;
        /* The pod's annotations named a place that is not possible here, and it got another one.
         * May be NULL. */
        void (*on_moved)(void *userdata, const RosterPod *pod, const Fault *note);
        void *userdata;
} ResolverOptions;

typedef struct ResolverCounters {
        uint64_t settled; /* by List, or as the next call of the same container */
        uint64_t placed;  /* of these, pods that came without a place */
        uint64_t moved;   /* and pods whose place was not possible */
        uint64_t unknown; /* nobody could say which pod it was */
        uint64_t refused; /* the pod fails: no card has room, or it can never be served */
        uint64_t allocated;
        uint64_t strayed; /* Allocate for other devices than were preferred */
} ResolverCounters;

int resolver_new(const ResolverOptions *options, Resolver **ret);
Resolver *resolver_free(Resolver *a); /* open calls are cut by their server */
ResolverCounters resolver_counters(const Resolver *a);

/* The two calls; each is answered once, now or later. */
void resolver_preferred(Resolver *a, DeviceKind kind, RpcCall *call, const PreferredRequest *request);
void resolver_allocate(Resolver *a, DeviceKind kind, RpcCall *call, PluginIds ids);

/* The kubelet was begun again: an admission that was under way is over. */
void resolver_forget(Resolver *a);

DEFINE_CLEANUP(Resolver *, resolver_free)
