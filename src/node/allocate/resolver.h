/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resolves which pod and container a call of the kubelet is for: its calls name devices, not pods.
 *
 * GetPreferredAllocation and Allocate are strictly serial on a node. While the first is open, the
 * kubelet's PodResources List already shows the pod that is being admitted: its container still
 * lacks this resource (docs/internals/identity.md). So the container is found then, its cards come
 * from its annotation, and the answer is devices of these cards. Allocate follows at once and reads
 * the card from the devices.
 *
 * An error is final for the pod, and its controller makes the next pod at once: an error never
 * means "wait".
 *
 * resolver.c finds the container, resolver_answer.c answers for it, and resolver_place.c gives
 * cards to a pod that has none or impossible ones. */

#include "node/allocate/node_context.h"
#include "node/kubelet/plugin.h"

typedef enum DeviceAccess {
        DEVICE_ACCESS_CDI,     /* CDI devices of our own specification */
        DEVICE_ACCESS_RUNTIME, /* NVIDIA_VISIBLE_DEVICES alone: the nvidia runtime does the rest */
} DeviceAccess;

typedef struct Resolver Resolver;

typedef struct ResolverOptions {
        const NodeContext *node;
        DeviceAccess access;
        /* The cards of the pod's annotations were impossible here, and it got others. May be
         * NULL. */
        void (*on_moved)(void *userdata, const RosterPod *pod, const Fault *note);
        void *userdata;
} ResolverOptions;

typedef struct ResolverCounters {
        /* answered for a container found by List, or for the second resource of the same one */
        uint64_t settled;
        uint64_t placed;  /* of these, pods that came without cards */
        uint64_t moved;   /* of these, pods with impossible cards */
        uint64_t unknown; /* calls for a pod that was not known well enough */
        uint64_t refused; /* the pod fails: no card has room, or it can never be served */
        uint64_t allocated;
        uint64_t strayed; /* Allocate for other devices than were preferred */
} ResolverCounters;

int resolver_new(const ResolverOptions *options, Resolver **ret); /* 0 or -ENOMEM */
Resolver *resolver_free(Resolver *r);                             /* open calls are cut by their server */
ResolverCounters resolver_counters(const Resolver *r);

/* Handle GetPreferredAllocation and Allocate. Each call is answered once, now or later. */
void resolver_preferred(Resolver *r, DeviceKind kind, RpcCall *rpc, const PreferredRequest *request);
void resolver_allocate(Resolver *r, DeviceKind kind, RpcCall *rpc, PluginIds ids);

/* Forgets the admission under way. Call it when the kubelet was restarted. */
void resolver_forget(Resolver *r);
