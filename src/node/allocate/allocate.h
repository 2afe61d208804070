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
typedef struct Turn {
        char *uid, *container; /* NULL: nobody's */
        bool settled[DEVICE_KINDS_];
        DeviceKind kind;
        DeviceSet offer; /* the answer that Allocate will name */
} Turn;

void turn_done(Turn *t);
void turn_end(Turn *t);
/* with_other: the other resource of the container is still to come. 0 or -ENOMEM. */
int turn_begin(Turn *t, const RosterPod *pod, const RosterContainer *c, DeviceKind kind, bool with_other);
int turn_offer(Turn *t, DeviceKind kind, const DeviceSet *set); /* 0 or -ENOMEM */
Str turn_uid(const Turn *t);                                    /* "" when it is nobody's */

/* Is this the other resource of the container whose turn it is? Never said of a pod that asks other
 * device plugins: one of these may have ended its admission, and the next pod may ask for the
 * same. */
bool turn_continues(const Turn *t, const Roster *roster, DeviceKind kind, uint32_t size, RosterPod **ret_pod,
                    const RosterContainer **ret_container);

typedef struct Allocator {
        const Roster *roster;
        Records *records;
        const Inventory *inventory;
        const Isolation *isolation; /* NULL: none */
        Turn *turn;
        bool with_cdi;
} Allocator;

enum { ALLOCATE_E_UNKNOWN = 1 };
/* Are these devices of ours? 0 or ALLOCATE_E_UNKNOWN with a fault that names the one that is
 * not. */
int allocate_check(const Allocator *a, DeviceKind kind, const DeviceSet *set, Fault *fault);

/* Answers the call, and remembers who was given what. Only memory brings environment and devices:
 * of two resources that both did, the kubelet would take either. false when nobody was asked about
 * just these devices. */
bool allocate(const Allocator *a, DeviceKind kind, const DeviceSet *set, RpcCall *call);
