/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cluster as the scheduler knows it. It takes the objects of four reflectors, and keeps the
 * ledger equal to what they say. It has no sockets: a test feeds texts.
 *
 * Of a pod only what is needed is kept:
 *   - not bound yet, with a share: its request, so that a bind needs no GET;
 *   - while its Binding is under way: a reservation, which is a grant that the API server has not
 *     confirmed. A watch that lags behind must not take it away. The pod's own object replaces it
 *     as soon as it says where the pod is;
 *   - bound: a grant. */

#include "base/hash.h"
#include "kube/reflector.h"
#include "scheduler/budgets.h"
#include "scheduler/directory.h"
#include "scheduler/fences.h"
#include "scheduler/hold.h"
#include "scheduler/profiles.h"
#include "share/node_defaults.h"
#include "share/request.h"

typedef enum ViewKind { VIEW_NODES, VIEW_PODS, VIEW_CONFIGMAPS, VIEW_BUDGETS, VIEW_KINDS_ } ViewKind;

typedef struct ViewPod {
        UT_hash_handle hh; /* by uid */
        Grant *grant;
        Request *request;    /* of a pod that is not bound; one allocation with its containers */
        struct Bind *bind;   /* the bind that is under way, the binder's */
        uint32_t generation; /* of the list that last had the pod, or during which it was bound */
        uint32_t carried;    /* pod_system_keys() of a pod that is not bound */
        int64_t priority;    /* spec.priority of a pod that is not bound; INT64_MIN: not known */
        uint64_t reported;   /* hash of the last report about its annotations; 0: none */
        bool reserved;       /* the grant is a reservation */
        bool never_preempts; /* spec.preemptionPolicy of a pod that is not bound is Never */
        uint16_t uid_len;
        char uid[];
} ViewPod;

typedef struct ViewStats {
        uint64_t objects[VIEW_KINDS_];
        uint64_t malformed[VIEW_KINDS_];   /* could not be read, and changed nothing */
        uint64_t lists[VIEW_KINDS_];       /* complete ones */
        uint64_t differences[VIEW_KINDS_]; /* found by lists: the watch had missed them */
} ViewStats;

typedef struct View {
        Ledger *ledger;
        Directory *directory;
        ViewPod *pods;
        Fences fences;
        Profiles profiles; /* of pods that hold a slice or are nominated */
        Budgets budgets;
        Hold hold; /* cards held for one pod; owned by the evictor */
        ViewStats stats;
        struct {
                uint32_t generation;  /* counts lists begun */
                bool listing, synced; /* synced: a list has been completed */
                /* An object could not be read: nothing is dropped after this list. */
                bool incomplete;
                uint64_t differences;
        } kinds[VIEW_KINDS_];
        Arena arena;           /* of the object that is being read */
        NodeDefaults defaults; /* for the nodes; set before the first one is read */
        /* Reports to the owner, which writes Events. Each may be NULL. */
        /* The modes mps, topology and mig. */
        void (*on_unserved_mode)(void *userdata, const Node *node, ShareMode mode);
        /* Keys of a node do not decode, and no agent of ours reports them. Called once until the
         * text changes. */
        void (*on_wrong_node)(void *userdata, const Node *node, const char *text);
        /* Annotations of a bound pod do not decode, or differ from its limits. Called once until
         * the text changes. */
        void (*on_odd_pod)(void *userdata, const Pod *pod, const char *text);
        void (*on_node)(void *userdata, const Node *node); /* came or changed */
        void (*on_node_gone)(void *userdata, Str name);
        void (*on_list_end)(void *userdata, ViewKind kind);
        void *userdata;
} View;

int view_new(View **ret);
View *view_free(View *v);

/* For the reflectors. 0, or -ENOMEM: then the view lacks an object until the next complete list. */
void view_list_begin(View *v, ViewKind kind);
int view_object(View *v, ViewKind kind, ReflectorEvent event, Str object);
void view_list_end(View *v, ViewKind kind);
void view_trouble(View *v, ViewKind kind, const Fault *fault);

/* Whether nodes and pods have been listed once. From then on the view only lags, by the delay of
 * the watch. */
bool view_in_sync(const View *v);

/* Makes the next list report again what is reported once. For a new leader: so far another replica
 * wrote the Events. */
void view_forget_reports(View *v);

/* Pods by UID. find: NULL when not known. ensure: made when not known; NULL when out of memory.
 * drop_if_unused: frees the entry when it holds nothing. */
ViewPod *view_pod_find(const View *v, Str uid);
ViewPod *view_pod_ensure(View *v, Str uid);
void view_pod_drop_if_unused(View *v, ViewPod *pod);

/* Takes over one pod as the API server has it now. 0 or -ENOMEM. */
int view_pod_set(View *v, const Pod *pod, ReflectorEvent event);

/* The priority of a pod that is not bound, as the watch has it; INT64_MIN where the watch has no
 * such pod. */
int64_t view_pod_priority(const View *v, Str uid);

/* Keeps a copy of the request; 0 or -ENOMEM. */
int view_pod_set_request(ViewPod *pod, const Request *request);

DEFINE_CLEANUP(View *, view_free)
