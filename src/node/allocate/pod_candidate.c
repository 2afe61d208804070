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
        for (size_t i = 0; c && i < c->n_devices; i++)
                if (str_eq(c->devices[i].resource, str_from(device_resource(kind))) && c->devices[i].n > 0)
                        return true;
        return false;
}

/* Devices are given in the pod's order: when one behind has some, so has this one. */
static bool is_passed(const RosterPod *pod, size_t index, const ListedPod *listed, DeviceKind kind) {
        for (size_t i = index; i < pod->n_containers; i++)
                if (pod->containers[i].kind != CONTAINER_INIT &&
                    lists_devices(listed_container(listed, pod->containers[i].name), kind))
                        return true;
        return false;
}

/* Which container comes next: the first in the pod's order that asks for so many and has none. Main
 * containers and sidecars have none when the List says so; ordinary init containers are never
 * listed, and our own books tell. */
static const RosterContainer *next_container(const PodCandidateQuery *ask, const RosterPod *pod,
                                             const ListedPod *listed) {
        const Record *record = records_find(ask->records, str_from(pod->uid));

        for (size_t i = 0; i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];
                const RecordContainer *given = record ? record_container(record, str_from(c->name)) : NULL;

                if (roster_asks(pod, c, ask->kind) != ask->size || is_passed(pod, i, listed, ask->kind))
                        continue;
                if (c->kind == CONTAINER_INIT && given && given->given[ask->kind].n > 0)
                        continue;
                return c;
        }
        return NULL;
}

/* The kubelet was killed in the middle of this admission and begins it again, while our books still
 * have the first try: no listed container of the pod has any, and the first that asks for so many
 * is meant. */
static const RosterContainer *first_container(const PodCandidateQuery *ask, const RosterPod *pod,
                                              const ListedPod *listed) {
        const RosterContainer *first = NULL;
        bool any_listed = false;

        for (size_t i = 0; i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];

                if (c->kind != CONTAINER_INIT) {
                        any_listed = true;
                        if (lists_devices(listed_container(listed, c->name), ask->kind))
                                return NULL;
                }
                if (!first && roster_asks(pod, c, ask->kind) == ask->size)
                        first = c;
        }
        return any_listed ? first : NULL;
}

typedef const RosterContainer *(*Criterion)(const PodCandidateQuery *ask, const RosterPod *pod,
                                            const ListedPod *listed);

static bool is_named(const char *name, const ListedPod *pod) {
        size_t n = pod->namespace_.len;

        return strlen(name) == n + 1 + pod->name.len && memcmp(name, pod->namespace_.data, n) == 0 &&
               name[n] == '/' && memcmp(name + n + 1, pod->name.data, pod->name.len) == 0;
}

static bool is_gone(const PodCandidateQuery *ask, const ListedPod *pod) {
        for (size_t i = 0; i < ask->n_gone; i++)
                if (is_named(ask->gone[i], pod))
                        return true;
        return false;
}

/* One that has all it wants is not being admitted: it was deleted by force, say, and the kubelet,
 * which waits for us, has not come to that. */
static bool lacks_devices(const ListedPod *pod, DeviceKind kind) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (!lists_devices(&pod->containers[i], kind))
                        return true;
        return pod->n_containers == 0;
}

/* It has been proved once, and so it was admitted long ago. One that ends while the kubelet makes
 * its List stands in it without devices: the pods are taken first, and what has ended is cleared
 * away before their devices are read (apis/podresources/server_v1.go). */
static bool has_started(const PodCandidateQuery *ask, const RosterPod *pod) {
        const Record *record = records_find(ask->records, str_from(pod->uid));

        return record && record->saved;
}

static PodCandidate find_by(const PodCandidateQuery *ask, const PodList *list, Criterion criterion) {
        PodCandidate found = {0};

        for (size_t i = 0; i < list->n; i++) {
                const ListedPod *listed = &list->pods[i];
                RosterPod *pod = roster_find_name(ask->roster, listed->namespace_, listed->name);
                const RosterContainer *c;

                if (is_gone(ask, listed)) {
                        found.gone = true;
                        continue;
                }
                if (!pod) {
                        if (lacks_devices(listed, ask->kind))
                                found.new = listed;
                        continue;
                }
                if (!pod->grant)
                        continue; /* it has ended: kubelets before 1.34 list such ones as well */
                c = criterion(ask, pod, listed);
                if (!c)
                        continue;
                if (found.pod && !has_started(ask, found.pod) && has_started(ask, pod))
                        continue;
                found.pod = pod;
                found.listed = listed;
                found.container = c;
                found.with_other = c->kind != CONTAINER_INIT &&
                                   !lists_devices(listed_container(listed, c->name), !ask->kind);
                found.n++;
        }
        return found;
}

PodCandidate pod_candidate_find(const PodCandidateQuery *ask, const PodList *list) {
        PodCandidate found = find_by(ask, list, next_container);

        return found.pod || found.new ? found : find_by(ask, list, first_container);
}

const RosterPod *pod_candidate_refused(const PodCandidateQuery *ask, const PodList *list) {
        for (size_t i = 0; i < list->n; i++) {
                const RosterPod *pod =
                        roster_find_name(ask->roster, list->pods[i].namespace_, list->pods[i].name);

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

static const RosterContainer *container_without(const PodCandidateQuery *ask, const RosterPod *pod) {
        return pod->grant ? pod_candidate_without(ask->records, pod, ask->kind, ask->size) : NULL;
}

RosterPod *pod_candidate_guess(const PodCandidateQuery *ask, Str turn, const RosterContainer **ret) {
        RosterPod *found = roster_find(ask->roster, turn);
        size_t n = 0;

        *ret = found ? container_without(ask, found) : NULL;
        if (*ret)
                return found;
        for (RosterPod *pod = ask->roster->pods; pod; pod = pod->hh.next) {
                const RosterContainer *c = container_without(ask, pod);

                if (!c)
                        continue;
                found = pod;
                *ret = c;
                n++;
        }
        return n == 1 ? found : NULL;
}

bool pod_candidate_is_doubtful(const PodCandidateQuery *ask, const PodCandidate *found) {
        const Record *record = records_find(ask->records, str_from(found->pod->uid));
        const RecordContainer *given =
                record && record->saved ? record_container(record, str_from(found->container->name)) : NULL;

        return found->container->kind != CONTAINER_INIT && given && given->given[ask->kind].n > 0;
}
