/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a pod asks for, checked and decoded, by the rules of docs/reference/reference.md for its
 * limits and its label gpu-count. */

#include "share/card_choice.h"
#include "share/refusal.h"
#include "wire/pod.h"

enum { REQUEST_MAX_CONTAINERS = 255 };

enum {
        REQUEST_E_NONE = 1, /* asks for none of our resources */
        REQUEST_E_REFUSED,  /* no node can ever satisfy it; *ret_refusal says why */
};

/* What one container takes on each of its cards. */
typedef struct RequestContainer {
        ContainerKind kind;
        uint32_t index; /* in spec.containers or spec.initContainers */
        uint32_t mem;   /* units per card: its gpu-mem divided by Request.cards */
        uint32_t core;  /* percent; 0 in pods without compute */
} RequestContainer;

typedef struct Request {
        uint32_t mem;   /* units taken from each card, as of `containers` by demand.h */
        uint32_t core;  /* percent, in the same way */
        uint32_t cards; /* number of cards; 1 if not specified */
        /* Whole cards of nodes in mode topology. A card is one unit there, and `mem` is 1. */
        bool whole;
        /* The application, equal for replicas: hash of the controller's UID; 0 for bare pods. */
        uint64_t app;
        uint32_t cpu; /* of the whole pod, in thousandths of a core */
        /* those that ask for our resources, init containers first; in the arena */
        RequestContainer *containers;
        size_t n_containers;
        const CardChoice *choice; /* which cards it may use; NULL: any. In the arena */
} Request;

/* Decodes the request. Returns 0, REQUEST_E_NONE, REQUEST_E_REFUSED with *ret_refusal, or -ENOMEM.
 * Both results point into pod and arena. A gpu-mem of 0 counts as absent, as Kubernetes has it for
 * extended resources; 0 percent breaks the rule. The number of cards is the label gpu-count, or
 * that resource in the containers' limits. */
int request_from_pod(const Pod *pod, Arena *arena, Request *ret, Refusal *ret_refusal);

/* The same without the choice of cards, which is NULL. For a bound pod: its allocation names its
 * cards, and what its user writes into POD_CARD_KEYS later has no effect. */
int request_amounts_from_pod(const Pod *pod, Arena *arena, Request *ret, Refusal *ret_refusal);

/* The pod's request of cpu, in thousandths of a core, as kube-scheduler computes it (PodRequests of
 * component-helpers/resource). A malformed text counts as 0; at most UINT32_MAX. */
uint32_t request_cpu_of_pod(const Pod *pod);

bool request_is_whole(const Pod *pod); /* it asks for whole cards */

/* request_size(): bytes of a copy with all that it points to. request_copy(): makes it at `at`,
 * which is aligned as by malloc(). */
size_t request_size(const Request *request);
Request *request_copy(const Request *request, void *at);
