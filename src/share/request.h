/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a pod asks for, checked: CONTRACT section 3. From here on there are only numbers. */

#include "share/refusal.h"
#include "wire/pod.h"

enum { REQUEST_MAX_CONTAINERS = 255 };

enum {
        REQUEST_E_NONE = 1, /* asks for none of our resources: not our business */
        REQUEST_E_REFUSED,  /* can never be satisfied; *ret_refusal says why */
};

/* What one container takes on each of its cards. */
typedef struct RequestContainer {
        ContainerKind kind;
        uint32_t index; /* in spec.containers or spec.initContainers */
        uint32_t mem;   /* units per card: its gpu-mem divided by `cards` */
        uint32_t core;  /* percent; 0 on memory-only pods */
} RequestContainer;

typedef struct Request {
        uint32_t mem; /* units taken from each card at the same time, at most: main containers and sidecars by
                         sum, init containers by maximum, as Kubernetes does for cpu */
        uint32_t core;  /* percent, by the same sum */
        uint32_t cards; /* M; 1 when nothing is said */
        uint64_t app;   /* equal for replicas of one application (controller's UID); 0 for bare pods */
        RequestContainer *containers; /* those that ask for our resources, init first; in the arena */
        size_t n_containers;
} Request;

/* 0, REQUEST_E_NONE, REQUEST_E_REFUSED or -ENOMEM. The request and the refusal point into pod and
 * arena. gpu-mem: 0 counts as not asked for, as Kubernetes treats zero of an extended resource; 0
 * percent is refused by the rule. M is the pod's label gpu-count, or that resource among the limits
 * of its containers. */
int request_from_pod(const Pod *pod, Arena *arena, Request *ret, Refusal *ret_refusal);
