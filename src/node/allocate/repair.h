/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes the system keys of a pod back when they differ from the node's records. Any user with the
 * right to patch the pod can change them, and other tools read them. Only pods are repaired that
 * have containers started by this node, because then no Binding can be newer than the record.
 *
 * All pods together get one repair a second at most, and one pod five a minute. A pod that needs
 * more is reported, with the field manager that wrote the keys last, and still repaired at that
 * rate. */

#include "node/allocate/node_context.h"

typedef struct Repair Repair;

typedef struct RepairOptions {
        const NodeContext *node;
        void (*on_tampered)(void *userdata, const RosterPod *pod, const Fault *note);
        void *userdata;
} RepairOptions;

int repair_new(const RepairOptions *options, Repair **ret); /* 0 or -ENOMEM */
Repair *repair_free(Repair *r);

/* Compares the pod's keys, and has wrong ones repaired. Call it when the pod came or changed, or a
 * container of it has started. */
void repair_look(Repair *r, const RosterPod *pod);
void repair_forget(Repair *r, Str uid); /* call it when the pod is gone */

typedef struct RepairCounters {
        uint64_t repaired; /* repairs that were begun */
        uint64_t tampered; /* reports of pods */
        size_t waiting;    /* pods with wrong keys now */
} RepairCounters;
RepairCounters repair_counters(const Repair *r);

DEFINE_CLEANUP(Repair *, repair_free)
