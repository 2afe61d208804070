/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Answers PreStartContainer, which the kubelet calls before each start of a container, from the
 * pod's own worker, with exactly the devices that the container has. Here the identity is proved:
 * the kubelet's checkpoint tells which pod holds the whole set of devices, and the set is compared
 * with that pod's placement in the roster. Where the checkpoint shows no holder of the set, List is
 * asked (node/allocate/start_check.h).
 *
 * An error is safe here: the kubelet shows its text and tries again in 12 s. A fault that is likely
 * to pass soon is waited for first: an old holder that is about to end, an object that is about to
 * arrive. */

#include "node/allocate/node_context.h"
#include "node/allocate/orphans.h"
#include "node/allocate/repair.h"
#include "node/kubelet/plugin.h"

typedef struct StartVerifier StartVerifier;

typedef struct StartVerifierOptions {
        const NodeContext *node;
        Orphans *orphans;       /* outlives it */
        Repair *repair;         /* outlives it; NULL: none */
        const char *checkpoint; /* path of kubelet_internal_checkpoint; outlives it */
        usec_t wait_max;        /* how long a call waits before it fails; 0: 5 s */
} StartVerifierOptions;

typedef struct StartVerifierCounters {
        uint64_t proved, waited, refused;
        size_t waiting; /* now */
} StartVerifierCounters;

int start_verifier_new(const StartVerifierOptions *options, StartVerifier **ret); /* 0 or -ENOMEM */
StartVerifier *start_verifier_free(StartVerifier *v);
StartVerifierCounters start_verifier_counters(const StartVerifier *v);

/* Answers the call once, now or later. */
void start_verifier_prestart(StartVerifier *v, DeviceKind kind, RpcCall *rpc, PluginIds ids);

/* Tries the open calls again, because something changed that they may wait for. Those that wait for
 * the driver's limit have been checked, and wait on: each attempt takes milliseconds. */
void start_verifier_wake(StartVerifier *v);
/* Tries the calls with devices of that record again: the driver has answered. */
void start_verifier_wake_pod(StartVerifier *v, const Record *record);

/* A pod came or changed, also before the first list is complete. Where this node has started
 * containers of it, its placement becomes the record's, whatever its annotations say. */
void start_verifier_keep_place(StartVerifier *v, RosterPod *pod);

/* Does the same, once the pods have been listed. Also gives a pod without a placement the one of
 * its record, and has it written into the pod's annotations. The agent may have been killed before
 * it was written, and the mirror of a static pod may be made again. */
void start_verifier_recall(StartVerifier *v, RosterPod *pod);

/* At start, once the pods have been listed: records what living pods hold by the kubelet's
 * checkpoint and not by the records. */
void start_verifier_adopt(StartVerifier *v);
