/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a pod asks for, checked and turned into numbers: the rules of docs/reference/reference.md
 * for its limits and its label gpu-count. */

#include "share/card_choice.h"
#include "share/refusal.h"
#include "wire/pod.h"

enum { REQUEST_MAX_CONTAINERS = 255 };

enum {
        REQUEST_E_NONE = 1, /* asks for none of our resources */
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
        uint32_t cards; /* M; 1 when it is absent */
        /* The cards are whole ones, of nodes in mode topology. A card is one unit there, and
         * `mem` is 1. */
        bool whole;
        /* Equal for replicas: UID of the controller; 0 for bare pods. */
        uint64_t app;
        uint32_t cpu;                 /* of the whole pod, in thousandths of a core */
        RequestContainer *containers; /* those with a request of ours, init first; in the arena */
        size_t n_containers;
        const CardChoice *choice; /* the cards that it may use; NULL: any. In the arena */
} Request;

/* Returns 0, REQUEST_E_NONE, REQUEST_E_REFUSED or -ENOMEM. The request and the refusal point into
 * pod and arena. A gpu-mem of 0 counts as absent, as in Kubernetes for extended resources; 0
 * percent breaks the rule. M is the label gpu-count of the pod, or that resource among the limits
 * of its containers. */
int request_from_pod(const Pod *pod, Arena *arena, Request *ret, Refusal *ret_refusal);

/* The same without the choice of cards, which is NULL then. For a pod that has its cards: where it
 * is, its allocation says, and what its user writes into POD_CARD_KEYS later changes nothing. */
int request_amounts_from_pod(const Pod *pod, Arena *arena, Request *ret, Refusal *ret_refusal);

/* What the pod requests of cpu, in thousandths of a core, as kube-scheduler counts: PodRequests of
 * component-helpers/resource. A text that is not a quantity counts as 0; at most UINT32_MAX. */
uint32_t request_cpu_of_pod(const Pod *pod);

bool request_is_whole(const Pod *pod); /* it asks for whole cards */

/* A copy with all that the request points to, in request_size() bytes from `at` on. `at` is aligned
 * as by malloc(). */
size_t request_size(const Request *request);
Request *request_copy(const Request *request, void *at);
