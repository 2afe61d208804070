/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes the system keys of a pod back when they say something else than this node's books: any
 * user who may patch the pod can change them, and other tools read them. Only of pods whose
 * containers this node has started, because then no Binding can be newer than the record. At most
 * one repair a second of all pods together, and five a minute of one pod. A pod that needs more is
 * told of, with the field manager that wrote the keys last, and is repaired at that rate. */

#include <systemd/sd-event.h>

#include "kube/client.h"
#include "node/allocate/pod_patcher.h"
#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct Repair Repair;

typedef struct RepairOptions {
        sd_event *event; /* all of these outlive it */
        const Roster *roster;
        const Records *records;
        KubeClient *client;
        PodPatcher *pod_patcher;
        void (*on_tampered)(void *userdata, const RosterPod *pod, const Fault *note);
        void *userdata;
} RepairOptions;

int repair_new(const RepairOptions *options, Repair **ret); /* 0 or -ENOMEM */
Repair *repair_free(Repair *r);

/* The pod came or changed, or a container of it has started. */
void repair_look(Repair *r, const RosterPod *pod);
void repair_forget(Repair *r, Str uid); /* the pod is gone */

typedef struct RepairCounters {
        uint64_t repaired; /* patches that were sent */
        uint64_t tampered; /* times that a pod was told of */
        size_t waiting;    /* pods whose keys are wrong now */
} RepairCounters;
RepairCounters repair_counters(const Repair *r);

DEFINE_CLEANUP(Repair *, repair_free)
