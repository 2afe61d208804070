/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The objects of the table of ResourcePolicies (policy_table.h). */

#include "base/clock.h"
#include "base/hash.h"
#include "scheduler/policy/directory.h"
#include "scheduler/policy/node_labels.h"
#include "scheduler/policy/policy_choice.h"
#include "scheduler/policy/policy_mark.h"

#define POLICY_NOTE_LASTS (2 * USEC_PER_SEC) /* how long a pod stays NOTED */

typedef enum PolicyPodState {
        POLICY_POD_PENDING,
        POLICY_POD_NOTED,
        POLICY_POD_BINDING,
        POLICY_POD_BOUND,
} PolicyPodState;

/* 128 bits: a sum over all pods of a cluster cannot overflow. */
__extension__ typedef __int128 PolicySum;

/* The pods of a policy with the same values of matchLabelKeys. */
typedef struct PolicyGroup {
        UT_hash_handle hh;
        uint32_t *pods;  /* by unit: number of pods that count */
        PolicySum *used; /* by unit and resource of the policy: their requests, in thousandths */
        size_t n_members;
        size_t key_len;
        char key[];
} PolicyGroup;

typedef struct Policy {
        UT_hash_handle hh;   /* by "namespace/name" */
        struct Policy *next; /* next policy of the namespace; the oldest first, then by name */
        Arena arena;         /* owns all texts */
        PolicySpec spec;
        Str key;
        Str *resources; /* resources that maxResources of some unit names */
        size_t n_resources;
        PolicyGroup *groups;
        uint32_t *terminating, *placed;     /* by unit, pods of all groups; placed: state BINDING or BOUND */
        uint32_t *nodes;                    /* by unit: number of nodes */
        uint32_t generation;                /* of the last list of policies that had it */
        uint32_t listed_pods, listed_nodes; /* lists begun when it came; later ones make it ready */
        uint64_t version;                   /* changes whenever its status would change */
        char why[101];                      /* why a pod of it waited last */
        size_t n_notes;                     /* number of its pods in state NOTED */
        bool was_ready;                     /* once ready, and its pods were woken */
        usec_t told_sample;                 /* last warning that kube-scheduler offers a sample; 0: never */
        struct PolicyReport *report; /* owned by the status writer (policy_keeper.c); freed by free() */
} Policy;

typedef struct PolicyPod {
        UT_hash_handle hh; /* by uid */
        Policy *policy;
        PolicyGroup *group; /* NULL: the pod lacks a label of matchLabelKeys, and counts in no unit */
        PolicyPodState state;
        size_t unit;                      /* n_units: in none */
        char *node;                       /* node that it is bound to, or being bound to */
        usec_t until;                     /* when the state NOTED expires */
        struct PolicyPod *before, *after; /* in the list of NOTED pods, the oldest first */
        uint32_t generation;
        uint64_t carries;  /* bit k: it has the podLabels and podAnnotations of unit k */
        uint64_t labelled; /* bit k: it has the podLabels of unit k */
        PolicyMark mark;
        bool terminating, previous; /* previous: PodScheduled became True before the policy was created */
        bool counted, summed;       /* counted: in its group; summed: in placed and terminating */
        bool waits, overlap_told;   /* waits: filter refused it for the policy */
        bool obeys;                 /* its scheduler calls us, so the policy applies to it */
        uint64_t scheduler;         /* hash of spec.schedulerName */
        uint64_t since;             /* first failed attempt, seconds since 1970; 0: the object says it */
        bool asked, gated;          /* asked: by filter, or woken instead; gated: not tried yet */
        uint8_t preempted;          /* as in PolicyAsker */
        uint64_t preempts_in;       /* bit k: victims in unit k help it, by the last filter */
        usec_t hint_refused;        /* when its nominated node was refused; 0: never */
        usec_t wake;                /* when to wake it; 0: never */
        usec_t patched;             /* when a patch was last sent for it */
        Str uid, namespace_, name;
        int64_t amounts[]; /* requests, by resource of the policy, in thousandths */
} PolicyPod;

/* A pod that waited under a policy that is gone or has changed. The status writer wakes it. */
typedef struct PolicyOrphan {
        struct PolicyOrphan *next;
        Str namespace_, name;
} PolicyOrphan;

enum { POLICY_SCHEDULERS_MAX = 8 };

typedef struct PolicyTable {
        Policy *policies;
        struct PolicyNamespace *namespaces;
        PolicyPod *pods;
        PolicyPod *notes, *notes_end;
        /* Where the next round of the status writer begins; NULL: at the first. */
        PolicyPod *kick_next, *patch_next;
        Policy *report_next;
        PolicyOrphan *orphans;
        struct PolicyOpen *opens; /* policy_table-internal.h */
        Directory *directory;
        NodeLabelKeys keys;                         /* label keys of nodes that units select by */
        uint64_t schedulers[POLICY_SCHEDULERS_MAX]; /* hashes of the names of schedulers that call us */
        size_t n_schedulers;
        uint64_t notes_expired; /* NOTED pods that were not bound in time, since the process began */
        /* Told once per pod when two policies select it; may be NULL. */
        void (*on_overlap)(void *userdata, const PolicyPod *pod, const Policy *second);
        void *userdata;
        uint32_t pods_listed, nodes_listed; /* generations of the last lists that are complete */
        bool stale;                         /* node labels have changed: counts must be made anew */
} PolicyTable;
