/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/pending_admission.h"

#include <errno.h>

void pending_admission_end(PendingAdmission *p) {
        free(p->uid);
        free(p->container);
        device_set_done(&p->offer);
        *p = (PendingAdmission){0};
}

Str pending_admission_uid(const PendingAdmission *p) {
        return str_from(p->uid);
}

int pending_admission_begin(PendingAdmission *p, const RosterPod *pod, const RosterContainer *c,
                            DeviceKind kind, bool with_other) {
        PendingAdmission next = {0};

        if (p->uid && strcmp(p->uid, pod->uid) == 0 && strcmp(p->container, c->name) == 0)
                return 0;
        next.uid = strdup(pod->uid);
        next.container = strdup(c->name);
        if (!next.uid || !next.container) {
                pending_admission_end(&next);
                return -ENOMEM;
        }
        next.settled[!kind] = !with_other;
        pending_admission_end(p);
        *p = next;
        return 0;
}

int pending_admission_offer(PendingAdmission *p, DeviceKind kind, const DeviceSet *set) {
        DeviceSet copy = DEVICE_SET_NULL;

        if (device_set_copy(set, &copy) < 0)
                return -ENOMEM;
        device_set_done(&p->offer);
        p->offer = copy;
        p->kind = kind;
        return 0;
}

static const RosterContainer *container_of(const RosterPod *pod, const char *name) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (strcmp(pod->containers[i].name, name) == 0)
                        return &pod->containers[i];
        return NULL;
}

bool pending_admission_continues(const PendingAdmission *p, const Roster *roster, DeviceKind kind,
                                 uint32_t size, RosterPod **ret_pod, const RosterContainer **ret_container) {
        RosterPod *pod = p->uid ? roster_find(roster, str_from(p->uid)) : NULL;
        const RosterContainer *c = pod ? container_of(pod, p->container) : NULL;

        if (!c || pod->other_devices || !pod->placed || !p->settled[!kind] || p->settled[kind] ||
            roster_asks(pod, c, kind) != size)
                return false;
        *ret_pod = pod;
        *ret_container = c;
        return true;
}

bool pending_admission_take(PendingAdmission *p, const Roster *roster, DeviceKind kind, const DeviceSet *set,
                            const RosterPod **ret_pod, const RosterContainer **ret_container) {
        const RosterPod *pod;

        if (p->uid && p->kind == kind && device_set_eq(&p->offer, set)) {
                pod = roster_find(roster, str_from(p->uid));
                p->settled[kind] = true;
                device_set_done(&p->offer); /* a later container may be offered the same set */
                if (pod) {
                        *ret_pod = pod;
                        *ret_container = container_of(pod, p->container);
                        return true;
                }
        }
        pending_admission_end(p);
        return false;
}
