/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether other victims may stand for those that kube-scheduler proposes. It does not run its
 * filters again after preempt, so that each proposed victim that is left out must be outweighed. */

#include "scheduler/question/victim_list.h"
#include "scheduler/question/victims.h"

typedef struct VictimSwap {
        const Profiles *profiles;
        const PodProfile *preemptor;
        const VictimList *proposed;
        const VictimChoice *chosen; /* instead */
} VictimSwap;

/* A proposed victim is left out only under two conditions. The pods that are added request at least
 * as much of every resource, and are as many. And nothing but resources can have been the reason to
 * propose it. A member whose Binding is under way counts as if it requested enough: the decision
 * waits then (unsettled.h).
 *
 * Returns 0 and *ret, or -ENOMEM. */
int victim_swap_is_allowed(const VictimSwap *s, Arena *arena, bool *ret);
