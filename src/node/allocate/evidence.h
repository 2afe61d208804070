/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who holds a set of devices, by the kubelet's own word. The checkpoint knows UIDs and init
 * containers and costs no call; List is what the kubelet promises to keep. Sets are compared as a
 * whole: a container has exactly these or is not meant. */

#include "node/kubelet/checkpoint.h"
#include "node/kubelet/pod_resources.h"
#include "node/records/records.h"
#include "node/records/roster.h"

/* One pod, and those of its containers that hold the set. A container's devices of memory are kept
 * too, for pods that came without a place. */
typedef struct Evidence {
        char *uid;               /* NULL when only names are known */
        char *namespace_, *name; /* NULL when only the UID is known */
        char **containers;
        size_t n_containers;
        RecordContainer
                *held; /* all that the pod's containers hold of ours; List does not know init containers */
        size_t n_held;
} Evidence;

void evidence_done(Evidence *e);

/* Of our resources alone. */
CheckpointFile evidence_file(const char *path);

enum {
        EVIDENCE_E_NONE = 1, /* nobody; fault says what was looked at */
        EVIDENCE_E_TWICE,    /* two living pods: the kubelet gave them out twice (kubernetes#137534) */
        EVIDENCE_E_UNEVEN,   /* what is held makes no place */
};

/* Entries of pods that are gone stay in the checkpoint for a while: living is who is in the roster
 * and holds something, or who is not known from the API server at all. Also -ENOMEM. */
int evidence_from_checkpoint(CheckpointFile *file, const Roster *roster, DeviceKind kind,
                             const DeviceSet *set, Evidence *ret, Fault *fault);
int evidence_from_list(const PodList *list, DeviceKind kind, const DeviceSet *set, Evidence *ret);

/* A pod without a place gets the one that its devices name: those of all its containers. 0,
 * EVIDENCE_E_UNEVEN, -ENOMEM. */
int evidence_place(const RecordContainer *all, size_t n_all, Roster *roster, RosterPod *pod, Fault *fault);

/* A pod that has a place, and whose containers this node has started, is where its record says: the
 * annotations may have been forged while no agent was there. A container without a record of its
 * own is on the same cards as the others of its pod. A record by which no container has started
 * changes nothing: the place of the Binding may be newer. Returns 1 when the pod has another place
 * now, 0 when it has not, -ENOMEM. */
int evidence_recall(const Record *record, Roster *roster, RosterPod *pod);

/* Living pods that the checkpoint knows and the records do not are taken into them. 0,
 * EVIDENCE_E_NONE, -ENOMEM. */
int evidence_adopt(CheckpointFile *file, const Roster *roster, Records *records, Fault *fault);
