/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the table of ResourcePolicies (policy_table.h) is made of. */

#include "base/clock.h"
#include "base/hash.h"
#include "scheduler/policy/directory.h"
#include "scheduler/policy/node_labels.h"
#include "scheduler/policy/policy_choice.h"
#include "scheduler/policy/policy_mark.h"

#define POLICY_NOTE_LASTS (2 * USEC_PER_SEC)

typedef enum PolicyPodState {
        POLICY_POD_PENDING,
        POLICY_POD_NOTED,
        POLICY_POD_BINDING,
        POLICY_POD_BOUND,
} PolicyPodState;

/* No number of pods of a cluster overflows it. */
__extension__ typedef __int128 PolicySum;

/* The pods of one set of values of matchLabelKeys. */
typedef struct PolicyGroup {
        UT_hash_handle hh;
        uint32_t *pods;  /* by unit: those that count */
        PolicySum *used; /* by unit and resource of the policy, thousandths */
        size_t n_members;
        size_t key_len;
        char key[];
} PolicyGroup;

typedef struct Policy {
        UT_hash_handle hh;   /* by "namespace/name" */
        struct Policy *next; /* of the namespace; the oldest first, then by name */
        Arena arena;         /* of all texts */
        PolicySpec spec;
        Str key;
        Str *resources; /* those that some unit limits */
        size_t n_resources;
        PolicyGroup *groups;
        uint32_t *terminating, *placed;     /* by unit, of all groups; placed: BINDING and BOUND */
        uint32_t *nodes;                    /* by unit */
        uint32_t generation;                /* of the list that last had it */
        uint32_t listed_pods, listed_nodes; /* generations of the lists when it came */
        uint64_t version;                   /* changes with each thing that its status says */
        char why[101];                      /* why a pod of it waited last */
        size_t n_notes;                     /* pods that are NOTED */
        bool was_ready;                     /* its pods have been woken since */
        usec_t told_sample;          /* when the log said that kube-scheduler offers a sample; 0: never */
        struct PolicyReport *report; /* the keeper's (policy_keeper.h); freed by free() */
} Policy;

typedef struct PolicyPod {
        UT_hash_handle hh; /* by uid */
        Policy *policy;
        PolicyGroup *group; /* NULL: it lacks a label of matchLabelKeys, and counts nowhere */
        PolicyPodState state;
        size_t unit;                      /* n_units: none */
        char *node;                       /* of a bound pod */
        usec_t until;                     /* of a note */
        struct PolicyPod *before, *after; /* among the notes, the oldest first */
        uint32_t generation;
        uint64_t carries;  /* bit k: it has the podLabels and podAnnotations of unit k */
        uint64_t labelled; /* bit k: it has the podLabels of unit k */
        PolicyMark mark;
        bool terminating, previous; /* previous: scheduled before the policy was created */
        bool counted, summed;       /* what charge() did */
        bool waits, overlap_told;   /* waits: filter refused it for the policy */
        bool obeys;                 /* its scheduler asks us */
        uint64_t scheduler;         /* hash of the name */
        uint64_t since;             /* first failed attempt, seconds since 1970; 0: the object says it */
        bool asked, gated;          /* by filter, or woken without it; behind a gate, not tried yet */
        uint8_t preempted;          /* as in PolicyAsker */
        uint64_t preempts_in;       /* bit k: victims in unit k help it, by the last filter */
        usec_t hint_refused;        /* when its only node was refused for an earlier unit; 0: never */
        usec_t wake;                /* when to wake it; 0: never */
        usec_t patched;             /* the last patch that was sent */
        Str uid, namespace_, name;
        int64_t amounts[]; /* by resource of the policy */
} PolicyPod;

/* A pod that waited for a policy which is gone or has changed. The keeper wakes it. */
typedef struct PolicyOrphan {
        struct PolicyOrphan *next;
        Str namespace_, name;
} PolicyOrphan;

/* A Binding that is under way while the policy of its pod is gone or has changed. */
typedef struct PolicyOpen {
        UT_hash_handle hh; /* by uid */
        Str uid;
        char *node; /* behind uid */
} PolicyOpen;

enum { POLICY_SCHEDULERS_MAX = 8 };

typedef struct PolicyTable {
        Policy *policies;
        struct PolicyNamespace *namespaces;
        PolicyPod *pods;
        PolicyPod *notes, *notes_end;
        /* Where the keeper's rounds go on; NULL: at the first. */
        PolicyPod *kick_next, *patch_next;
        Policy *report_next;
        PolicyOrphan *orphans;
        PolicyOpen *opens;
        Directory *directory;
        NodeLabelKeys keys;                         /* labels of nodes that are kept */
        uint64_t schedulers[POLICY_SCHEDULERS_MAX]; /* those that ask, by the hash of their name */
        size_t n_schedulers;
        uint64_t notes_expired; /* pods that were NOTED and not bound in time, since the start */
        /* Two policies select a pod that is asked about; may be NULL. Called once for a pod. */
        void (*on_overlap)(void *userdata, const PolicyPod *pod, const Policy *second);
        void *userdata;
        uint32_t pods_listed, nodes_listed; /* generations of the last complete lists */
        bool stale;                         /* units of nodes may have changed: counts are made anew */
} PolicyTable;
