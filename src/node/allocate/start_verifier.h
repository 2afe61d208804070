/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* PreStartContainer comes before each start of a container, from the pod's own worker, with exactly
 * the devices that the container has. Here the identity is proved: the whole set in the kubelet's
 * checkpoint (or, where that cannot be read, in List) against the pod's annotations. Then the
 * record goes to disk, and the pod is marked as assigned.
 *
 * An error is safe here: the kubelet shows its text and tries again in 12 s. What is likely to pass
 * soon (an old holder that is about to end, an object that is about to arrive) is waited for a
 * while first. */

#include "node/allocate/orphans.h"
#include "node/allocate/pod_patcher.h"
#include "node/allocate/repair.h"
#include "node/isolation/isolation.h"
#include "node/kubelet/plugin.h"
#include "node/kubelet/pod_resources.h"
#include "node/records/records.h"

typedef struct StartVerifier StartVerifier;

typedef struct StartVerifierOptions {
        sd_event *event; /* all of these outlive it */
        Roster *roster;
        Records *records;
        const Inventory *inventory;
        PodResources *pod_resources;
        PodPatcher *pod_patcher;
        Orphans *orphans;
        Repair *repair;         /* NULL: none */
        Isolation *isolation;   /* NULL: none */
        const char *checkpoint; /* path of kubelet_internal_checkpoint */
        usec_t patience;        /* before "not yet" is said; 0: 5 s */
} StartVerifierOptions;

typedef struct StartVerifierCounters {
        uint64_t proved, waited, refused;
        size_t waiting; /* now */
} StartVerifierCounters;

int start_verifier_new(const StartVerifierOptions *options, StartVerifier **ret); /* 0 or -ENOMEM */
StartVerifier *start_verifier_free(StartVerifier *p);
StartVerifierCounters start_verifier_counters(const StartVerifier *p);

void start_verifier_prestart(StartVerifier *p, DeviceKind kind, RpcCall *call, PluginIds ids);

/* Something changed that an open call may wait for. */
void start_verifier_wake(StartVerifier *p);

/* A pod came or changed, also before the first list is complete. Where this node has started its
 * containers, its place is the one that its record names, whatever its annotations say. */
void start_verifier_keep_place(StartVerifier *p, RosterPod *pod);

/* The same, when the pods have been listed; and a pod without a place gets, and its annotations are
 * told, the one that its record names: the agent may have been killed before it was written, and
 * the mirror of a static pod may be made again. */
void start_verifier_recall(StartVerifier *p, RosterPod *pod);

/* At start, when the pods have been listed: what the kubelet says its living pods hold, and our
 * books do not, is taken over. */
void start_verifier_adopt(StartVerifier *p);

DEFINE_CLEANUP(StartVerifier *, start_verifier_free)
