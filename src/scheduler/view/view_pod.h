/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the view (view.h) keeps of a pod, by UID. view_pod_object.c takes it from the pods'
 * objects. */

#include "base/clock.h"
#include "base/hash.h"
#include "base/histogram.h"
#include "kube/reflector.h"
#include "share/grant.h"
#include "share/ledger_node.h"
#include "share/request.h"

typedef struct ViewPod {
        UT_hash_handle hh; /* by uid */
        Grant *grant;
        LedgerNode *cpu_node; /* bound pod without a share: the node where its cpu is counted; else NULL */
        uint32_t cpu;
        Request *request;    /* of a pod that is not bound; its containers are in the same allocation */
        struct Bind *bind;   /* the bind that is under way (binds-internal.h); NULL: none */
        uint32_t generation; /* of the list that last had the pod, or during which it came */
        uint32_t bound_in;   /* of the list during which it was bound, or last seen bound */
        uint32_t carried;    /* pod_system_keys() of a pod that is not bound */
        int64_t priority;    /* spec.priority of a pod that is not bound; INT64_MIN: not known */
        uint64_t reported;   /* hash of the last report about its annotations; 0: none */
        usec_t bound_at;     /* when our Binding was answered, until the watch shows it; else 0 */
        bool reserved;       /* the grant is a reservation */
        /* the grant's cards were planned by its gang, and the watch has not shown it bound yet */
        bool from_plan;
        bool gone;           /* the watch has shown its deletion; only its bind keeps the entry */
        bool terminating;    /* a bound pod with a share is being deleted */
        bool asks_nothing;   /* not bound, names our scheduler, and has no share */
        bool told_unserved;  /* a key without effect was reported */
        bool never_preempts; /* spec.preemptionPolicy of a pod that is not bound is Never */
        uint16_t uid_len;
        char uid[];
} ViewPod;

struct View;

/* Returns NULL for an unknown UID. */
ViewPod *view_pod_find(const struct View *v, Str uid);

/* The same, but adds an empty entry for an unknown UID. NULL when out of memory, or when the text
 * is longer than any UID. */
ViewPod *view_pod_ensure(struct View *v, Str uid);

/* Frees the entry when it holds nothing. */
void view_pod_drop_if_unused(struct View *v, ViewPod *pod);

/* Takes over one pod as the API server has it now. 0 or -ENOMEM. */
int view_pod_set(struct View *v, const Pod *pod, ReflectorEvent event);

/* The same for the policy table, which needs the pod's text. Returns 0 or -ENOMEM. */
int view_pod_set_text(struct View *v, const Pod *pod, Str object, ReflectorEvent event);

/* spec.priority of a pod that waits for cards, from the watch; INT64_MIN: the watch has no such
 * pod. */
int64_t view_pod_priority(const struct View *v, Str uid);

/* Keeps a copy of the request. Returns 0 or -ENOMEM. */
int view_pod_set_request(ViewPod *pod, const Request *request);

/* take_plan: the pod's reservation takes cards that its gang had planned (unsettled.h). settle: the
 * watch shows it bound, or the cards are given back; does nothing for other pods. */
void view_pod_take_plan(struct View *v, ViewPod *pod);
void view_pod_settle(struct View *v, ViewPod *pod);
