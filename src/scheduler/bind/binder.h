/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Binds pods. A bind chooses the cards by what the ledger holds now, reservations included, and
 * reserves them by a grant like any other. Then it sends one Binding with the pod's UID and the
 * annotations, which the API server merges into the pod in one write. System keys that the pod
 * carries and the Binding gives no value are emptied by it: what a user wrote there before the
 * Binding does not count. No lock is held meanwhile, because other binds see the reservation.
 *
 *     new -> queued -> posted -> bound                      2xx: the reservation is the grant from
 *                                                           now on
 *                             -> given back                 refused, or the request was not sent
 *                             -> asking -> waiting -> ask-queued -> asking -> ...
 *                                                           no answer, or one that may hide a
 *                                                           success: the reservation stays until
 *                                                           a quorum GET says whether the pod is
 *                                                           bound
 *
 * The Bind of a gang's member is held first (held), without a reservation: the plan of the gang has
 * its cards. The gang releases it, or gives it back.
 *
 * Some Bindings and GETs are under way at a time, and the queue keeps their order. A pod that
 * the view does not know yet is fetched first (fetching). For a pod without a share the Binding has
 * only the emptied keys, and nothing is reserved. A pod with a share gets an Event that names its
 * cards (GPUAssigned), or why the bind failed (FailedBinding). */

#include "kube/api.h"
#include "scheduler/question/args.h"
#include "scheduler/question/scheduler_context.h"

typedef struct Binder Binder;
typedef struct Bind Bind;

/* context outlives the binder, and its `binder` is set to it. may_not_act is asked just before each
 * Binding, because leadership may end while a pod is fetched or waits in the queue. confirm: time
 * between the first GET that finds the pod not bound and the second one; 0: 1 s. Returns 0 or
 * -ENOMEM. */
int binder_new(SchedulerContext *context, usec_t confirm, Binder **ret);

/* Frees the binder. Open binds are not answered. The next leader finds out from the API server how
 * they ended. */
Binder *binder_free(Binder *b);
size_t binder_n_open(const Binder *b);

/* Has `idle` called once, when the last of the open binds has ended. */
void binder_when_idle(Binder *b, void (*idle)(void *userdata), void *userdata);

/* How a bind ended. error: "" when the pod is bound to the node, else one sentence for people.
 * Called exactly once, within binder_bind() or later. After an error the reservation may stay,
 * because only the API server knows whether the pod is bound. */
typedef void (*BinderDone)(void *userdata, const char *error);

/* Begins a bind. *ret is NULL when `done` has been called already. Otherwise the caller calls
 * binder_abandon() when it no longer waits for the answer. A bind that has sent its Binding goes
 * on. */
void binder_bind(Binder *b, const BindingArgs *args, BinderDone done, void *userdata, Bind **ret);
void binder_abandon(Bind *bind);

/* Continue the held Bind of the pod, or answer it with the error `why`. Where no Bind of the pod is
 * held, the gang is told that it has ended. */
void binder_release(Binder *b, Str uid);
void binder_give_back(Binder *b, Str uid, const char *why);

DEFINE_CLEANUP(Binder *, binder_free)
