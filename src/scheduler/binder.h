/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Binding pods. A bind chooses the cards by what the ledger holds now, reservations included;
 * reserves them, by a grant like any other; and sends one Binding with the pod's UID and the
 * annotations, which the API server merges into the pod in one write. System keys that the pod
 * carries and the Binding gives no value are emptied with it: nothing that a user wrote there
 * before the Binding counts. No lock is held meanwhile: other binds see the reservation, and that
 * is all they need.
 *
 *     placed -> posted -> bound                        2xx: the reservation is the grant from now on
 *                      -> given back                   the API server said no, or never heard of it
 *                      -> asking <-> waiting -> ...    no answer, or one that may hide a success: the reservation
 *                                                      stays until a quorum GET tells
 *
 * A pod that the view does not know (yet) is fetched first. */

#include "kube/api.h"
#include "scheduler/args.h"
#include "scheduler/metrics.h"
#include "scheduler/view.h"

typedef struct Binder Binder;
typedef struct Bind Bind;

typedef struct BinderOptions {
        KubeClient *client; /* these outlive the binder */
        View *view;
        Metrics *metrics;
        KubeEventRecorder *recorder; /* NULL: no Events */
        usec_t confirm; /* 0: 1 s; between two looks at a pod that is not bound after a lost answer */

        /* Asked just before each Binding, for leadership may end while a pod is fetched: NULL, or
         * why not. NULL: always. */
        const char *(*may_not_bind)(void *userdata);
        void *userdata;
} BinderOptions;

int binder_new(const BinderOptions *options, Binder **ret);
Binder *binder_free(
        Binder *b); /* open binds are not answered any more; their fate is for whoever comes after us */
size_t binder_n_open(const Binder *b);

/* error: "" when the pod is bound to the node; else one sentence for people. Called exactly once,
 * within binder_bind() or later. With an error the reservation may live on: what it is worth is
 * decided by the API server alone. */
typedef void (*BinderDone)(void *userdata, const char *error);

/* *ret: NULL when it has been answered already. Otherwise binder_abandon() when nobody waits for the
 * answer any more; the bind itself goes on. */
void binder_bind(Binder *b, const BindingArgs *args, BinderDone done, void *userdata, Bind **ret);
void binder_abandon(Bind *bind);

DEFINE_CLEANUP(Binder *, binder_free)
