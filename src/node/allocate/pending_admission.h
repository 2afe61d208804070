/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The container that the kubelet admits now: what is known of it between GetPreferredAllocation and
 * Allocate. The second resource of the same container comes next, unless another device plugin
 * stands between. */

#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct PendingAdmission {
        char *uid, *container; /* NULL: no container is being admitted */
        bool settled[DEVICE_KINDS_];
        DeviceKind kind;
        DeviceSet offer; /* the preferred devices, which Allocate will name */
} PendingAdmission;

/* Frees what it holds; afterwards no container is being admitted. */
void pending_admission_end(PendingAdmission *p);

/* Begins the admission of a container, unless it is the one being admitted. with_other: the other
 * resource of the container is still to come. 0 or -ENOMEM. */
int pending_admission_begin(PendingAdmission *p, const RosterPod *pod, const RosterContainer *c,
                            DeviceKind kind, bool with_other);

/* Remembers (copies) the devices that were preferred. 0 or -ENOMEM. */
int pending_admission_offer(PendingAdmission *p, DeviceKind kind, const DeviceSet *set);

/* The pod's UID, "" when no container is being admitted. */
Str pending_admission_uid(const PendingAdmission *p);

/* Whether a call for `size` devices is for the other resource of the same container. False for a
 * pod that also uses other device plugins: one of them may have ended its admission, and the next
 * pod may ask for the same number. */
bool pending_admission_continues(const PendingAdmission *p, const Roster *roster, DeviceKind kind,
                                 uint32_t size, RosterPod **ret_pod, const RosterContainer **ret_container);

/* Takes the container that was offered exactly these devices. *ret_container is NULL when the pod
 * no longer has it. False, and the admission ends: these devices were not offered, or their pod is
 * gone. */
bool pending_admission_take(PendingAdmission *p, const Roster *roster, DeviceKind kind, const DeviceSet *set,
                            const RosterPod **ret_pod, const RosterContainer **ret_container);
