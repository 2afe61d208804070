/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/pod_candidate.h"

#include <string.h>

static const ListedContainer *listed_container(const ListedPod *pod, const char *name) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (str_eq(pod->containers[i].name, str_from(name)))
                        return &pod->containers[i];
        return NULL;
}

static bool lists_devices(const ListedContainer *c, DeviceKind kind) {
        DeviceKind of;

        for (size_t i = 0; c && i < c->n_devices; i++)
                if (device_kind_of(c->devices[i].resource, &of) && of == kind && c->devices[i].n > 0)
                        return true;
        return false;
}

/* Whether this container or a later one is listed with devices. They are given in the pod's order,
 * so this container then has its own already. */
static bool is_passed(const RosterPod *pod, size_t index, const ListedPod *listed, DeviceKind kind) {
        for (size_t i = index; i < pod->n_containers; i++)
                if (pod->containers[i].kind != CONTAINER_INIT &&
                    lists_devices(listed_container(listed, pod->containers[i].name), kind))
                        return true;
        return false;
}

/* The container that is next: the first in the pod's order that asks for this many devices and has
 * none. For main containers and sidecars List decides. Ordinary init containers are never listed,
 * so the records decide. */
static const RosterContainer *next_container(const PodCandidateQuery *query, const RosterPod *pod,
                                             const ListedPod *listed) {
        const Record *record = records_find(query->records, str_from(pod->uid));

        for (size_t i = 0; i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];
                const RecordContainer *given = record ? record_container(record, str_from(c->name)) : NULL;

                if (roster_asks(pod, c, query->kind) != query->size || is_passed(pod, i, listed, query->kind))
                        continue;
                if (c->kind == CONTAINER_INIT && given && given->given[query->kind].n > 0)
                        continue;
                return c;
        }
        return NULL;
}

/* The container that is next when the kubelet was killed during this admission and begins it again,
 * while the records still have the first attempt. No listed container of the pod has devices then,
 * and the first that asks for this many is meant. */
static const RosterContainer *first_container(const PodCandidateQuery *query, const RosterPod *pod,
                                              const ListedPod *listed) {
        const RosterContainer *first = NULL;
        bool any_listed = false;

        for (size_t i = 0; i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];

                if (c->kind != CONTAINER_INIT) {
                        any_listed = true;
                        if (lists_devices(listed_container(listed, c->name), query->kind))
                                return NULL;
                }
                if (!first && roster_asks(pod, c, query->kind) == query->size)
                        first = c;
        }
        return any_listed ? first : NULL;
}

typedef const RosterContainer *(*Criterion)(const PodCandidateQuery *query, const RosterPod *pod,
                                            const ListedPod *listed);

static bool is_named(const char *name, const ListedPod *pod) {
        size_t n = pod->namespace_.len;

        return strlen(name) == n + 1 + pod->name.len && memcmp(name, pod->namespace_.data, n) == 0 &&
               name[n] == '/' && memcmp(name + n + 1, pod->name.data, pod->name.len) == 0;
}

static bool is_gone(const PodCandidateQuery *query, const ListedPod *pod) {
        for (size_t i = 0; i < query->n_gone; i++)
                if (is_named(query->gone[i], pod))
                        return true;
        return false;
}

/* Whether a container of the pod lacks devices. A pod that lacks none is not being
 * admitted. It may have been deleted by force, which the kubelet does not handle while it waits for
 * this answer. */
static bool lacks_devices(const ListedPod *pod, DeviceKind kind) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (!lists_devices(&pod->containers[i], kind))
                        return true;
        return pod->n_containers == 0;
}

/* Whether a start of the pod was proved, so that it was admitted long ago. When it ends
 * while the kubelet makes its List, it is listed without devices. The kubelet takes the pods first,
 * and frees the devices of ended pods before it reads devices (apis/podresources/server_v1.go). */
static bool has_started(const PodCandidateQuery *query, const RosterPod *pod) {
        const Record *record = records_find(query->records, str_from(pod->uid));

        return record && record->saved;
}

static PodCandidate find_by(const PodCandidateQuery *query, const PodList *list, Criterion criterion) {
        PodCandidate found = {0};

        for (size_t i = 0; i < list->n; i++) {
                const ListedPod *listed = &list->pods[i];
                RosterPod *pod = roster_find_name(query->roster, listed->namespace_, listed->name);
                const RosterContainer *c;

                if (is_gone(query, listed)) {
                        found.gone = true;
                        continue;
                }
                if (!pod) {
                        if (lacks_devices(listed, query->kind))
                                found.new = listed;
                        continue;
                }
                if (!pod->grant)
                        continue; /* it has ended: kubelets before 1.34 list such pods too */
                c = criterion(query, pod, listed);
                if (!c)
                        continue;
                if (found.pod && !has_started(query, found.pod) && has_started(query, pod))
                        continue;
                found.pod = pod;
                found.listed = listed;
                found.container = c;
                found.with_other = c->kind != CONTAINER_INIT &&
                                   !lists_devices(listed_container(listed, c->name), !query->kind);
                found.n++;
        }
        return found;
}

PodCandidate pod_candidate_find(const PodCandidateQuery *query, const PodList *list) {
        PodCandidate found = find_by(query, list, next_container);

        return found.pod || found.new ? found : find_by(query, list, first_container);
}

const RosterPod *pod_candidate_refused(const PodCandidateQuery *query, const PodList *list) {
        for (size_t i = 0; i < list->n; i++) {
                const RosterPod *pod =
                        roster_find_name(query->roster, list->pods[i].namespace_, list->pods[i].name);

                if (pod && pod->refusal)
                        return pod;
        }
        return NULL;
}

const RosterContainer *pod_candidate_without(const Records *records, const RosterPod *pod, DeviceKind kind,
                                             size_t n) {
        const Record *record = records_find(records, str_from(pod->uid));

        for (size_t i = 0; i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];
                const RecordContainer *given = record ? record_container(record, str_from(c->name)) : NULL;

                if (roster_asks(pod, c, kind) == n && (!given || given->given[kind].n == 0))
                        return c;
        }
        return NULL;
}

static const RosterContainer *container_without(const PodCandidateQuery *query, const RosterPod *pod) {
        return pod->grant ? pod_candidate_without(query->records, pod, query->kind, query->size) : NULL;
}

/* Whether pod a was bound before pod b: those with a placement are admitted in the order of their
 * Bindings. */
static bool is_bound_before(const RosterPod *a, const RosterPod *b) {
        return a->placed != b->placed ? a->placed : a->assume < b->assume;
}

RosterPod *pod_candidate_guess(const PodCandidateQuery *query, Str pending, const RosterContainer **ret) {
        RosterPod *found = roster_find(query->roster, pending);
        size_t n = 0;

        *ret = found ? container_without(query, found) : NULL;
        if (*ret)
                return found;
        found = NULL;
        for (RosterPod *pod = query->roster->pods; pod; pod = pod->hh.next) {
                const RosterContainer *c = container_without(query, pod);

                if (!c)
                        continue;
                n++;
                if (found && !is_bound_before(pod, found))
                        continue;
                found = pod;
                *ret = c;
        }
        return n == 1 || (found && found->placed) ? found : NULL;
}

bool pod_candidate_is_doubtful(const PodCandidateQuery *query, const PodCandidate *found) {
        const Record *record = records_find(query->records, str_from(found->pod->uid));
        const RecordContainer *given =
                record && record->saved ? record_container(record, str_from(found->container->name)) : NULL;

        return found->container->kind != CONTAINER_INIT && given && given->given[query->kind].n > 0;
}
