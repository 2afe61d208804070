/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a pod says about its gang (docs/use/gangs.md). Like every object a view (wire/object.h). It
 * is decoded apart from Pod, because few pods of a cluster are members of a gang. */

#include "wire/annotation.h"
#include "wire/object.h"

/* Keys of users without an effect here: an Event says so. Those of ACK are labels or annotations,
 * the next two are Koordinator's, the last is scheduler-plugins'. */
#define KEY_GANG_GROUPS        LABEL_GANG "/groups"
#define KEY_GANG_MATCH         LABEL_GANG "/match-policy"
#define ANNOTATION_GANG_GROUPS "gang.scheduling.koordinator.sh/groups"
#define ANNOTATION_GANG_MATCH  "gang.scheduling.koordinator.sh/match-policy"
#define LABEL_POD_GROUP        "scheduling.x-k8s.io/pod-group"

typedef struct PodGang {
        /* The label LABEL_GANG_NAME, else LABEL_GANG, else ANNOTATION_GANG_NAME, else
         * "gpu-topology/" before LABEL_TOPOLOGY_JOB. Empty: none. */
        Str name;
        /* The value of LABEL_GANG_MIN, else ANNOTATION_GANG_MIN; for a job, of
         * LABEL_TOPOLOGY_REPLICAS. */
        Str min;
        const char *min_key; /* the label where that number belongs */
        int64_t priority;    /* spec.priority; 0 when absent */
        bool gated;          /* spec.schedulingGates has GATE_GANG */
        bool gated_else;     /* spec.schedulingGates has another gate */
        /* A hash of its nodeSelector, affinity, tolerations and spread constraints. Pods with the
         * same hash can go to the same nodes, but for cpu, memory, volumes and ports. */
        uint64_t where;
        /* The condition PodScheduled is False with the reason Unschedulable. message: that of
         * PodScheduled. */
        bool unschedulable;
        Str message;
} PodGang;

/* Returns 0, OBJECT_E_MALFORMED with a fault that names the path (*ret untouched; fault may be
 * NULL), or -ENOMEM. */
int pod_gang_decode(Str json, Arena *arena, PodGang *ret, Fault *fault);

enum { POD_GANG_MIN_MAX = 1024 }; /* limit for the members that wait for one another */

/* Reads the value of min-available: from 1 to POD_GANG_MIN_MAX. False for any other text. */
bool pod_gang_min(Str text, uint32_t *ret);
