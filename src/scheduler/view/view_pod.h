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
        LedgerNode *cpu_node; /* of a bound pod without a share: where its cpu is counted, or NULL */
        uint32_t cpu;
        Request *request;    /* of a pod that is not bound; one allocation with its containers */
        struct Bind *bind;   /* the bind that is under way, the binder's */
        uint32_t generation; /* of the list that last had the pod, or during which it was bound */
        uint32_t carried;    /* pod_system_keys() of a pod that is not bound */
        int64_t priority;    /* spec.priority of a pod that is not bound; INT64_MIN: not known */
        uint64_t reported;   /* hash of the last report about its annotations; 0: none */
        usec_t bound_at;     /* when our Binding was answered, until the watch shows it; else 0 */
        bool reserved;       /* the grant is a reservation */
        bool from_plan;      /* of cards that a gang had planned, until the watch shows it bound */
        bool terminating;    /* of a bound pod with a share */
        bool asks_nothing;   /* not bound yet, of our profile, without a share */
        bool told_unserved;  /* on_unserved_key was called for it */
        bool never_preempts; /* spec.preemptionPolicy of a pod that is not bound is Never */
        uint16_t uid_len;
        char uid[];
} ViewPod;

struct View;

/* NULL when the pod is not known. */
ViewPod *view_pod_find(const struct View *v, Str uid);

/* The same, and an empty entry is made when it is not known. NULL when out of memory, or when the
 * UID is longer than a UID can be. */
ViewPod *view_pod_ensure(struct View *v, Str uid);

/* Frees the entry when it holds nothing. */
void view_pod_drop_if_unused(struct View *v, ViewPod *pod);

/* Takes over one pod as the API server has it now. 0 or -ENOMEM. */
int view_pod_set(struct View *v, const Pod *pod, ReflectorEvent event);

/* The same for what a ResourcePolicy needs of it, which is in its text. 0 or -ENOMEM. */
int view_pod_set_text(struct View *v, const Pod *pod, Str object, ReflectorEvent event);

/* The priority of a pod that is not bound, as the watch has it; INT64_MIN where the watch has no
 * such pod. */
int64_t view_pod_priority(const struct View *v, Str uid);

/* Keeps a copy of the request; 0 or -ENOMEM. */
int view_pod_set_request(ViewPod *pod, const Request *request);

/* The pod's reservation takes cards that a gang had planned for it (unsettled.h). settle: the watch
 * shows it bound, or it has given them back. Without effect on other pods. */
void view_pod_take_plan(struct View *v, ViewPod *pod);
void view_pod_settle(struct View *v, ViewPod *pod);
