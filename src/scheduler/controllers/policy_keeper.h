/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the leader writes about ResourcePolicies besides Bindings. Once a second, while there is a
 * policy:
 *   - the status of policies that have changed: how many pods are in which unit, and conditions;
 *   - the annotation aliquot.dev/kick of pods that wait for a time, or for a policy that changed:
 *     kube-scheduler tries a pod again when its object changes;
 *   - labels and costs of bound pods that their Binding did not write (policy_bind_patch()). A
 *     write that fails is repeated half a minute later. One status of a policy is in flight at a
 *     time. A pod of a policy that is gone is woken once; if that patch fails, kube-scheduler
 *     retries it by itself. */

#include "scheduler/question/scheduler_context.h"

typedef struct PolicyKeeper PolicyKeeper;

int policy_keeper_new(SchedulerContext *context, PolicyKeeper **ret); /* 0 or -ENOMEM */
PolicyKeeper *policy_keeper_free(PolicyKeeper *k);                    /* before the view */

/* A policy came, changed or went. */
void policy_keeper_poke(PolicyKeeper *k);

/* What the timer does once a second; for tests. */
void policy_keeper_tick(PolicyKeeper *k, usec_t now);

DEFINE_CLEANUP(PolicyKeeper *, policy_keeper_free)
