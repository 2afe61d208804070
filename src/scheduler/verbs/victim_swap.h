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
        const VictimChoice *chosen; /* replaces `proposed` */
} VictimSwap;

/* A proposed victim may be left out only under two conditions. The added pods request at least as
 * much of every resource, and are at least as many. And only resources can have been the reason to
 * propose it. A member being bound counts as requesting enough: that decision is put off
 * (unsettled.h).
 *
 * Returns 0 with *ret, or -ENOMEM. */
int victim_swap_is_allowed(const VictimSwap *s, Arena *arena, bool *ret);
