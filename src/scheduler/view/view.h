/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cluster as the scheduler knows it. It takes the objects of five reflectors, and keeps the
 * ledger equal to what they say. It has no sockets: a test feeds texts.
 *
 * Of a pod only what is needed is kept:
 *   - not bound yet, with a share: its request, so that a bind needs no GET;
 *   - not bound yet, of our profile, without a share: a mark, for the same reason;
 *   - while its Binding is under way: a reservation, which is a grant that the API server has not
 *     confirmed. A watch that lags behind must not take it away. The pod's own object replaces it
 *     as soon as it says where the pod is;
 *   - bound: a grant; without a share: where its cpu counts, if the ledger orders nodes by it. */

#include "base/hash.h"
#include "kube/reflector.h"
#include "scheduler/policy/directory.h"
#include "scheduler/policy/policy_table.h"
#include "scheduler/view/budgets.h"
#include "scheduler/view/fences.h"
#include "scheduler/view/hold.h"
#include "scheduler/view/profiles.h"
#include "scheduler/view/view_pod.h"
#include "share/node_defaults.h"
#include "share/request.h"

typedef enum ViewKind {
        VIEW_NODES,
        VIEW_PODS,
        VIEW_CONFIGMAPS,
        VIEW_BUDGETS,
        VIEW_POLICIES,
        VIEW_KINDS_
} ViewKind;

typedef struct ViewStats {
        uint64_t objects[VIEW_KINDS_];
        uint64_t malformed[VIEW_KINDS_];   /* objects that did not decode, and changed nothing */
        uint64_t lists[VIEW_KINDS_];       /* complete lists */
        uint64_t differences[VIEW_KINDS_]; /* changes that the watch had missed and a list found */
        /* time from the answer to a Binding until the watch shows the pod bound */
        Histogram lag;
} ViewStats;

/* What is wrong with a node or a pod, for an Event. Told once until it changes. */
typedef struct ViewReport {
        const char *kind; /* "Node" or "Pod" */
        const ObjectMeta *about;
        const char *reason, *note;
} ViewReport;

typedef struct View {
        Ledger *ledger;
        Directory *directory;
        ViewPod *pods;
        Fences fences;
        Profiles profiles; /* of pods that hold a slice or are nominated */
        Budgets budgets;
        PolicyTable *policies;              /* ResourcePolicies, and what they need of pods and nodes */
        bool policies_awaited;              /* not known yet whether the cluster has policies, or which */
        bool policies_changed;              /* on_policies is still to be called */
        Hold hold;                          /* cards held for one pod; owned by the evictor */
        size_t n_from_plan;                 /* number of pods with from_plan */
        void (*on_settled)(void *userdata); /* n_from_plan has become 0; may be NULL */
        void *settled_userdata;
        ViewStats stats;
        struct {
                uint32_t generation;  /* number of lists begun */
                bool listing, synced; /* synced: a list has been completed */
                /* an object of the list could not be read: nothing is dropped at its end */
                bool incomplete;
                uint64_t differences;
        } kinds[VIEW_KINDS_];
        Arena arena; /* reset for each object */
        /* settings of nodes without the annotation; set before the first node is read */
        NodeDefaults defaults;
        bool groups_pods; /* pods of a job are placed together, if they ask for it */
        /* Hooks; each may be NULL. */
        void (*on_report)(void *userdata, const ViewReport *report);
        void (*on_node)(void *userdata, const Node *node); /* came or changed */
        void (*on_node_gone)(void *userdata, Str name);    /* after the ledger has removed it */
        void (*on_pod)(void *userdata, const Pod *pod, Str object, ReflectorEvent event);
        void (*on_list_begin)(void *userdata, ViewKind kind);
        void (*on_list_end)(void *userdata, ViewKind kind, bool complete);
        /* A ResourcePolicy came, changed or went: pods and nodes must be listed again. */
        void (*on_policies)(void *userdata);
        void *userdata;
} View;

/* Returns 0 or -ENOMEM. */
int view_new(View **ret);
View *view_free(View *v);

/* For the reflectors. view_object() returns 0, or -ENOMEM: the view then lacks the object until the
 * next complete list. */
void view_list_begin(View *v, ViewKind kind);
int view_object(View *v, ViewKind kind, ReflectorEvent event, Str object);
void view_list_end(View *v, ViewKind kind);
void view_passed_over(View *v, ViewKind kind);
void view_trouble(View *v, ViewKind kind, const Fault *fault);

/* Whether nodes and pods have been listed once, and ResourcePolicies if the cluster serves them.
 * From then on the view lags only by the delay of the watch. */
bool view_in_sync(const View *v);

/* Makes the next list report again what is reported once. For a new leader: so far another replica
 * wrote the Events. */
void view_forget_reports(View *v);

DEFINE_CLEANUP(View *, view_free)
