/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What decides whether kube-scheduler should see all nodes that fit a pod, or the best alone. It is
 * decoded apart from Pod, because one pod is asked about at a time, and all pods of a cluster are
 * decoded. */

#include "wire/object.h"

typedef struct PodPreference {
        /* Preferred affinity to nodes, preferred affinity or anti-affinity to pods, or a topology
         * spread constraint with ScheduleAnyway: kube-scheduler's scores serve these. */
        bool prefers;
        /* An attempt to schedule it has failed: the condition PodScheduled is False. The API server
         * itself writes False for a pod with gates, with the reason SchedulingGated, and does not
         * take it back (applySchedulingGatedCondition, registry/core/pod/strategy.go): that counts
         * as no attempt. */
        bool failed;
} PodPreference;

/* Returns 0, OBJECT_E_MALFORMED with a fault that names the path (*ret untouched; fault may be
 * NULL), or -ENOMEM. */
int pod_preference_decode(Str json, Arena *arena, PodPreference *ret, Fault *fault);
