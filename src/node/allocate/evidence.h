/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Evidence of which container holds a set of devices, as the kubelet itself says. The checkpoint
 * has UIDs and init containers and costs no call; List is the interface that the kubelet promises
 * to keep. Sets are compared as a whole: a container has exactly these devices or is not meant. */

#include "node/allocate/node_context.h"
#include "node/kubelet/checkpoint.h"
#include "node/kubelet/pod_resources.h"

/* What was found: one pod, and those of its containers that hold the set. */
typedef struct Evidence {
        char *uid;               /* NULL when only names are known */
        char *namespace_, *name; /* NULL when only the UID is known */
        char **containers;
        size_t n_containers;
        /* Our devices of all containers of the pod, to place one that came without a placement.
         * List does not show init containers. */
        RecordContainer *held;
        size_t n_held;
} Evidence;

void evidence_done(Evidence *e);

/* Makes the reader of the checkpoint at this path, for the entries of our resources alone. */
CheckpointFile evidence_file(const char *path);

enum {
        EVIDENCE_E_NONE = 1, /* no container holds the set; the fault names what was read */
        EVIDENCE_E_TWICE,    /* two living pods: the kubelet gave them out twice (kubernetes#137534) */
        /* the held devices give no placement: cards, or units of each card, are not as requested */
        EVIDENCE_E_UNEVEN,
};

/* Finds the pod that holds the set. Entries of pods that are gone stay in the checkpoint for a
 * while. A pod is living when it is in the roster and holds something, or when the API server has
 * not shown it at all. 0, EVIDENCE_E_NONE, EVIDENCE_E_TWICE, -ENOMEM. */
int evidence_from_checkpoint(CheckpointFile *file, const Roster *roster, DeviceKind kind,
                             const DeviceSet *set, Evidence *ret, Fault *fault);
/* 0, EVIDENCE_E_NONE, -ENOMEM. */
int evidence_from_list(const PodList *list, DeviceKind kind, const DeviceSet *set, Evidence *ret);

/* Gives a pod without a placement the one that the devices of all its containers imply. 0,
 * EVIDENCE_E_UNEVEN, -ENOMEM. */
int evidence_place(const RecordContainer *all, size_t n_all, Roster *roster, RosterPod *pod, Fault *fault);

/* Gives a pod the placement of its record, if this node has started containers of it: its
 * annotations may have been forged while no agent ran. A container without a record of its own is
 * on the same cards as the others of its pod. A record by which no container has started changes
 * nothing, because the placement of the Binding may be newer. Returns 1 when the pod's placement
 * changed, 0 when it did not, -ENOMEM. */
int evidence_recall(const Record *record, Roster *roster, RosterPod *pod);

/* Records devices that the kubelet has given to a container, as records_give() does. Where the
 * record did not have any of this kind, it may have been lost while the container ran: then the
 * size in force is that of the slice's pages. Neighbours may have grown into what it has given up.
 * 0 or -ENOMEM. */
int evidence_give(const NodeContext *node, const RosterPod *pod, Str container, bool init, DeviceKind kind,
                  const DeviceSet *set);

/* Records the devices of living pods that the checkpoint has and the records do not. 0,
 * EVIDENCE_E_NONE, -ENOMEM. */
int evidence_adopt(CheckpointFile *file, const NodeContext *node, Fault *fault);
