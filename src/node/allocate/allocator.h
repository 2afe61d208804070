/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Allocate, which follows GetPreferredAllocation at once: everything is in memory, nothing is
 * waited for, because the kubelet's main loop stands still meanwhile. */

#include "node/isolation/isolation.h"
#include "node/kubelet/plugin.h"
#include "node/records/records.h"
#include "node/records/roster.h"

/* Whose turn it is between GetPreferredAllocation and Allocate, and for the second resource of the
 * same container, which comes next unless another device plugin stands between. */
typedef struct PendingAdmission {
        char *uid, *container; /* NULL: nobody's */
        bool settled[DEVICE_KINDS_];
        DeviceKind kind;
        DeviceSet offer; /* the answer that Allocate will name */
} PendingAdmission;

void pending_admission_done(PendingAdmission *t);
void pending_admission_end(PendingAdmission *t);
/* with_other: the other resource of the container is still to come. 0 or -ENOMEM. */
int pending_admission_begin(PendingAdmission *t, const RosterPod *pod, const RosterContainer *c,
                            DeviceKind kind, bool with_other);
int pending_admission_offer(PendingAdmission *t, DeviceKind kind, const DeviceSet *set); /* 0 or -ENOMEM */
Str pending_admission_uid(const PendingAdmission *t); /* "" when it is nobody's */

/* Is this the other resource of the container whose turn it is? Never said of a pod that asks other
 * device plugins: one of these may have ended its admission, and the next pod may ask for the
 * same. */
bool pending_admission_continues(const PendingAdmission *t, const Roster *roster, DeviceKind kind,
                                 uint32_t size, RosterPod **ret_pod, const RosterContainer **ret_container);

typedef struct Allocator {
        const Roster *roster;
        Records *records;
        const Inventory *inventory;
        const Isolation *isolation; /* NULL: none */
        PendingAdmission *turn;
        bool with_cdi;
} Allocator;

enum { ALLOCATOR_E_UNKNOWN = 1 };
/* Are these devices of ours? 0 or ALLOCATOR_E_UNKNOWN with a fault that names the one that is
 * not. */
int allocator_check(const Allocator *a, DeviceKind kind, const DeviceSet *set, Fault *fault);

/* Answers the call, and remembers who was given what. Only memory brings environment and devices:
 * of two resources that both did, the kubelet would take either. false when nobody was asked about
 * just these devices. */
bool allocator_answer(const Allocator *a, DeviceKind kind, const DeviceSet *set, RpcCall *call);
