/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds the pod that is being admitted, and its container: by the kubelet's List, by the API
 * server's pods of the node, and by the records. Pure. */

#include "node/kubelet/pod_resources.h"
#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct PodCandidateQuery {
        const Roster *roster;
        const Records *records;
        DeviceKind kind;   /* kind of the devices that the kubelet asks for */
        uint32_t size;     /* the number of devices that the kubelet asks for */
        char *const *gone; /* NAMESPACE/NAME of pods that the API server does not have */
        size_t n_gone;
} PodCandidateQuery;

typedef struct PodCandidate {
        RosterPod *pod; /* NULL: no listed pod that is known fits */
        const ListedPod *listed;
        const RosterContainer *container;
        bool with_other;      /* it lacks the other resource as well, as far as List tells */
        size_t n;             /* pods that fit */
        const ListedPod *new; /* a listed pod that may fit and that the API server has not shown */
        bool gone;            /* a listed pod may fit that the API server does not have */
} PodCandidate;

PodCandidate pod_candidate_find(const PodCandidateQuery *query, const PodList *list);

/* Whether the container has started once and List shows no devices of it. Then this is more likely
 * another pod of the same name, which the watch does not show yet. */
bool pod_candidate_is_doubtful(const PodCandidateQuery *query, const PodCandidate *found);

/* A listed pod that can never be served; NULL: none. */
const RosterPod *pod_candidate_refused(const PodCandidateQuery *query, const PodList *list);

/* By the records: the first container of the pod that asks for n devices and was given none; NULL:
 * none. */
const RosterContainer *pod_candidate_without(const Records *records, const RosterPod *pod, DeviceKind kind,
                                             size_t n);

/* Where the kubelet has answered no List: the pod that is being admitted, because admission goes
 * pod by pod (pending: its UID, "" for none). Else, of the pods that wait for that many devices,
 * the one with a placement that was bound first: the kubelet admits pods in the order of their
 * Bindings. Else the only pod that waits; NULL: not known. ret: its container. PreStart proves the
 * answer in each case. */
RosterPod *pod_candidate_guess(const PodCandidateQuery *query, Str pending, const RosterContainer **ret);
