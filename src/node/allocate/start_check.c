/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/start_check.h"

#include "node/allocate/card_in_use.h"
#include "node/allocate/slice_growth.h"
#include "wire/annotation.h"

/* "3 of gpu0, 2 of gpu1" */
static void write_cards(const DeviceSet *set, Buf *out) {
        uint32_t card, count;
        size_t at = 0;

        while (device_set_next_card(set, &at, &card, &count))
                buf_appendf(out, "%s%u of gpu%u", out->len > 0 ? ", " : "", count, card);
}

static void write_shares(const CardShare *shares, size_t n, Buf *out) {
        for (size_t i = 0; i < n; i++)
                buf_appendf(out, "%s%u of gpu%u", i > 0 ? ", " : "", shares[i].count, shares[i].card);
}

static bool shares_are(const CardShare *shares, size_t n, const DeviceSet *set) {
        uint32_t card, count;
        size_t at = 0, i = 0;

        while (device_set_next_card(set, &at, &card, &count)) {
                if (i == n || shares[i].card != card || shares[i].count != count)
                        return false;
                i++;
        }
        return i == n;
}

static bool is_among(const Evidence *e, const RosterContainer *c) {
        for (size_t i = 0; i < e->n_containers; i++)
                if (strcmp(e->containers[i], c->name) == 0)
                        return true;
        return false;
}

static bool has_started(const StartCheck *check, const RosterPod *pod, const RosterContainer *c) {
        const Record *record = records_find(check->node->records, str_from(pod->uid));
        const RecordContainer *known = record ? record_container(record, str_from(c->name)) : NULL;

        return known && known->started;
}

/* Finds the container that the call is for, and checks that the devices are those of its place. The
 * kubelet names devices and no container. It gives those of an init container to later containers
 * too, which run one after the other, in the pod's order. So the container is the first of those
 * that have the devices and have not started. When all have started it is the last one: an init
 * container that starts again may be taken for a later one, never a later one for an init
 * container. */
static int check_place(const StartCheck *check, const RosterPod *pod, const Evidence *e,
                       const RosterContainer **ret, Fault *fault) {
        _cleanup_buf_ Buf given = BUF_NULL, place = BUF_NULL;
        CardShare shares[CARD_INDEX_MAX + 1];
        const RosterContainer *last = NULL;
        size_t n = 0;

        for (size_t i = 0; i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];

                if (!is_among(e, c))
                        continue;
                last = c;
                n = roster_shares(pod, c, check->kind, shares);
                if (!shares_are(shares, n, check->set))
                        continue;
                *ret = c;
                if (!has_started(check, pod, c))
                        break;
        }
        if (*ret)
                return 0;
        write_cards(check->set, &given);
        write_shares(shares, n, &place);
        return fault_set(
                fault, START_CHECK_E_REFUSED,
                "pod %s/%s: container %s was given %.*s by the kubelet, but its place is %.*s: delete "
                "the pod to have it placed again",
                pod->namespace_, pod->name, last ? last->name : "(unknown)",
                STR_ARG(given.len > 0 ? buf_str(&given) : STR("nothing")),
                STR_ARG(place.len > 0 ? buf_str(&place) : STR("not on any card")));
}

/* On an isolated node no container starts that has a mount over its preload library, with
 * CGPU_DISABLE or without. The webhook refuses such a pod, but does not see every pod. This check
 * comes before the record, because a recorded container counts as proved. */
static int check_cover(const StartCheck *check, const RosterPod *pod, const RosterContainer *c,
                       Fault *fault) {
        const NodeContext *node = check->node;

        if (!node->isolation || !share_mode_is_isolated(node->inventory->mode) || !c->gate_cover)
                return 0;
        return fault_set(fault, START_CHECK_E_REFUSED, "pod %s/%s: container %s: %s", pod->namespace_,
                         pod->name, c->name, c->gate_cover);
}

/* Waits for an old holder of the same devices: a pod that was deleted by force, or one whose
 * devices the kubelet counted as free too early. */
static int check_holder(const StartCheck *check, const RosterPod *pod, Fault *fault) {
        const NodeContext *node = check->node;
        Record *old;

        while ((old = records_holder(node->records, check->kind, check->set, str_from(pod->uid)))) {
                const RosterPod *living = roster_find(node->roster, str_from(old->uid));

                if (living && living->grant)
                        return fault_set(fault, START_CHECK_E_WAIT, /* the watch may be behind */
                                         "pod %s/%s: the kubelet gave it devices of %s that pod %s/%s holds",
                                         pod->namespace_, pod->name,
                                         inventory_resource(check->node->inventory, check->kind),
                                         old->namespace_, old->name);
                if (!orphans_ended(check->orphans, old))
                        return fault_set(fault, START_CHECK_E_WAIT,
                                         "pod %s/%s waits: processes of pod %s/%s, which is gone, still hold "
                                         "its slice",
                                         pod->namespace_, pod->name, old->namespace_, old->name);
        }
        return 0;
}

/* Waits for slices that have grown, or hold more than their size, where they leave no room for
 * these devices. Then a former leader placed the pod, or another scheduler. Memory and compute have
 * a call each. The one for memory makes the container count as started, so each call looks at both,
 * as far as the record has them. */
static int check_room(const StartCheck *check, const RosterPod *pod, const RosterContainer *c, Fault *fault) {
        const Record *record = records_find(check->node->records, str_from(pod->uid));
        const RecordContainer *given = record ? record_container(record, str_from(c->name)) : NULL;
        uint32_t card = 0;

        if (!slice_growth_is_possible(check->node->growth))
                return 0;
        for (int i = 0; i < DEVICE_KINDS_; i++) {
                DeviceKind kind = (DeviceKind) i;
                const DeviceSet *set = kind == check->kind ? check->set : given ? &given->given[kind] : NULL;

                if (set && !card_in_use_lets_start(check->node, kind, str_from(pod->uid), set, &card))
                        return fault_set(
                                fault, START_CHECK_E_WAIT,
                                "pod %s/%s waits: slices of gpu%u that have grown beyond their limits "
                                "leave no %s",
                                pod->namespace_, pod->name, card, kind == DEVICE_MEM ? "room" : "compute");
        }
        return 0;
}

static int keep_record(const StartCheck *check, const RosterPod *pod, const RosterContainer *c,
                       Fault *fault) {
        const NodeContext *node = check->node;
        Record *record;
        int r;

        r = evidence_give(node, pod, str_from(c->name), c->kind == CONTAINER_INIT, check->kind, check->set);
        record = r == 0 ? records_find(node->records, str_from(pod->uid)) : NULL;
        if (record)
                r = records_save(node->records, record, fault);
        return r < 0 ? fault_wrap(fault, START_CHECK_E_WAIT, "pod %s/%s waits for its record",
                                  pod->namespace_, pod->name)
                     : 0;
}

/* Records the start after every check that may make the container wait: the kubelet calls again for
 * one that waits, and it has not started. */
static int keep_start(const StartCheck *check, const RosterPod *pod, const RosterContainer *c, Fault *fault) {
        Records *records = check->node->records;
        Record *record = records_find(records, str_from(pod->uid));
        int r = 0;

        if (check->kind != DEVICE_MEM || has_started(check, pod, c))
                return 0;
        record_set_assume(record, pod->assume);
        record_set_started(record, str_from(c->name), true);
        r = records_save(records, record, fault);
        if (r == 0)
                return 0;
        record_set_started(record, str_from(c->name), false);
        return fault_wrap(fault, START_CHECK_E_WAIT, "pod %s/%s waits for its record", pod->namespace_,
                          pod->name);
}

/* Pages that an earlier attempt made are made no second time, which reads all slices of the node.
 * But the size may have changed meanwhile. */
static int make_pages(const StartCheck *check, const RosterPod *pod, const RosterContainer *c,
                      const RecordContainer *given, Fault *fault) {
        const NodeContext *node = check->node;

        if (check->has_pages && share_mode_is_isolated(node->inventory->mode))
                return isolation_resize(node->isolation, node->inventory, c, given, fault);
        return isolation_prepare(node->isolation, node->inventory, pod, c, given, fault);
}

/* Writes the slice pages of an isolated container, which does not start without them. */
static int isolate_container(const StartCheck *check, const RosterPod *pod, const RosterContainer *c,
                             Fault *fault) {
        const NodeContext *node = check->node;
        const Record *record = records_find(node->records, str_from(pod->uid));
        const RecordContainer *given = record ? record_container(record, str_from(c->name)) : NULL;

        if (!node->isolation || check->kind != DEVICE_MEM)
                return 0;
        if (!given || make_pages(check, pod, c, given, fault) != 0)
                return fault_wrap(fault, START_CHECK_E_WAIT, "pod %s/%s: container %s", pod->namespace_,
                                  pod->name, c->name);
        return 0;
}

/* Has the driver's limit on the pod set and read back: no isolated container starts without it
 * where the node asks for it. Another one waits for the driver, and starts without an answer. */
static int limit_memory(const StartCheck *check, const char *uid, const char *container, Fault *fault) {
        const NodeContext *node = check->node;
        const Record *record = records_find(node->records, str_from(uid));
        int r;

        if (!node->limits || check->kind != DEVICE_MEM || !record)
                return 0;
        r = memory_limits_start(node->limits, record, fault);
        if (r <= 0 || (check->late && !share_mode_is_isolated(node->inventory->mode)))
                return r < 0 ? r : 0;
        r = r == MEMORY_LIMITS_E_ASKED   ? START_CHECK_E_LIMIT
            : r == MEMORY_LIMITS_E_LATER ? START_CHECK_E_WAIT
                                         : START_CHECK_E_REFUSED;
        return fault_wrap(fault, r, "pod %s/%s: container %s", record->namespace_, record->name, container);
}

static int check_pod(const StartCheck *check, RosterPod *pod, const Evidence *e, Fault *fault) {
        const RosterContainer *c = NULL;
        int r;

        if (pod->refusal)
                return fault_set(fault, START_CHECK_E_REFUSED, "pod %s/%s: %s", pod->namespace_, pod->name,
                                 pod->refusal);
        if (!pod->grant)
                return fault_set(fault, START_CHECK_E_WAIT, "pod %s/%s has ended, as the API server says",
                                 pod->namespace_, pod->name);
        if (!pod->placed) {
                r = evidence_place(e->held, e->n_held, check->node->roster, pod, fault);
                if (r != 0)
                        return r < 0 ? r : START_CHECK_E_REFUSED;
                pod_patcher_place(check->node->pod_patcher, pod);
        }
        r = check_place(check, pod, e, &c, fault);
        if (r == 0)
                r = check_cover(check, pod, c, fault);
        if (r == 0)
                r = check_holder(check, pod, fault);
        if (r == 0)
                r = check_room(check, pod, c, fault);
        if (r == 0)
                r = keep_record(check, pod, c, fault);
        if (r == 0)
                r = isolate_container(check, pod, c, fault);
        if (r == 0) /* behind isolate_container(), which says that the driver is gone */
                r = limit_memory(check, pod->uid, c->name, fault);
        if (r == 0)
                r = keep_start(check, pod, c, fault);
        if (r != 0)
                return r;
        pod_patcher_assign(check->node->pod_patcher, pod);
        if (check->repair)
                repair_look(check->repair, pod);
        return 0;
}

/* Whether the container has run on this node before. A saved record does not tell: Allocate writes
 * it for all resources, and the first resource that is proved saves it. For memory, the pages must
 * be there as well. */
static bool has_run(const StartCheck *check, const RecordContainer *given) {
        const NodeContext *node = check->node;

        return !node->isolation || check->kind != DEVICE_MEM ||
               isolation_is_complete(node->isolation, node->inventory, given);
}

/* Whether a saved record proves the set for this pod. Then a container may start again while the
 * API server has not shown the pod. An init container and later containers may have the same
 * devices; the pages are then those of the last one that started. If one of them has not started,
 * the call may be for that one, which has no pages yet. So for memory all must have started. */
static bool is_on_record(const StartCheck *check, const Evidence *e) {
        const Record *record = records_find(check->node->records, str_from(e->uid));
        const RecordContainer *given = NULL;
        size_t n = 0, n_started = 0;

        for (size_t i = 0; record && record->saved && i < record->n_containers; i++)
                if (device_set_eq(&record->containers[i].given[check->kind], check->set)) {
                        given = &record->containers[i];
                        n++;
                        n_started += given->started;
                }
        return (n == 1 || (n > 1 && (check->kind != DEVICE_MEM || n_started == n))) && has_run(check, given);
}

int start_check_run(const StartCheck *check, CheckpointFile *checkpoint, const Evidence *listed,
                    Fault *fault) {
        const Roster *roster = check->node->roster;
        _cleanup_(evidence_done) Evidence found = {0};
        const Evidence *e = &found;
        RosterPod *pod;
        int r;

        /* Since then the driver may be another one, and a device file another card's. */
        if (check->node->cards_are_old)
                return fault_set(fault, START_CHECK_E_WAIT,
                                 "the driver has not answered since the node agent began");
        r = evidence_from_checkpoint(checkpoint, roster, check->kind, check->set, &found, fault);
        if (r == EVIDENCE_E_NONE) {
                if (listed->n_containers == 0)
                        return fault_wrap(fault, START_CHECK_E_LIST, "%zu of %s", check->set->n,
                                          inventory_resource(check->node->inventory, check->kind));
                e = listed;
                r = 0;
        }
        if (r == EVIDENCE_E_TWICE)
                return START_CHECK_E_WAIT; /* one of the two may be gone, and the watch behind */
        if (r != 0)
                return r;
        pod = e->uid ? roster_find(roster, str_from(e->uid))
                     : roster_find_name(roster, str_from(e->namespace_), str_from(e->name));
        if (pod)
                return check_pod(check, pod, e, fault);
        if (e->uid && is_on_record(check, e))
                return limit_memory(check, e->uid, e->containers[0], fault);
        return fault_set(fault, START_CHECK_E_WAIT,
                         "the pod with uid %s is not known from the API server yet",
                         e->uid ? e->uid : "(unknown)");
}
