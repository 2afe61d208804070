/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pod of the kubelet's List is the one that is being admitted, and which of its containers?
 * By List, by what the API server says of the node's pods, and by our own books. Pure. */

#include "node/kubelet/pod_resources.h"
#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct PodCandidateQuery {
        const Roster *roster;
        const Records *records;
        DeviceKind kind; /* so many of these are asked for */
        uint32_t size;
        char *const *gone; /* NAMESPACE/NAME of those that the API server does not have */
        size_t n_gone;
} PodCandidateQuery;

typedef struct PodCandidate {
        RosterPod *pod; /* NULL: none of List's that we know */
        const ListedPod *listed;
        const RosterContainer *container;
        bool with_other;      /* and it lacks the other resource as well, as far as List tells */
        size_t n;             /* pods that it could be */
        const ListedPod *new; /* it could be this one too, which was not heard of from the API server */
        bool gone;            /* or the one that the API server does not have */
} PodCandidate;

PodCandidate pod_candidate_find(const PodCandidateQuery *ask, const PodList *list);

/* Its container has started once, and has no devices now: more likely this is another pod of the
 * same name, which our watch does not show yet. */
bool pod_candidate_is_doubtful(const PodCandidateQuery *ask, const PodCandidate *found);

/* One of List's that can never be served; NULL: none. */
const RosterPod *pod_candidate_refused(const PodCandidateQuery *ask, const PodList *list);

/* By our own books: the first container of the pod that asks for n of them and was given none;
 * NULL: there is none. */
const RosterContainer *pod_candidate_without(const Records *records, const RosterPod *pod, DeviceKind kind,
                                             size_t n);

/* The kubelet has answered no List at all. The pod whose turn it was ("": nobody's) goes first, as
 * admission goes pod by pod; else the only one that it could be. PreStart proves it in either case.
 * NULL: nobody knows. */
RosterPod *pod_candidate_guess(const PodCandidateQuery *ask, Str turn, const RosterContainer **ret);
