/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* filter and preempt for pods that a ResourcePolicy selects: of the offered nodes those of one unit
 * are answered. */

#include "scheduler/policy/policy_table.h"
#include "scheduler/question/candidates.h"

/* The policies' chooser for filter; the table outlives it. */
Chooser policy_filter_chooser(PolicyTable *t);

/* The hook may_preempt of UnitHooks; userdata: the table. True for pods without a policy. False
 * where the unit is full by now. */
bool policy_filter_may_preempt(void *userdata, Str uid, const DirectoryNode *node);

/* Writes how full the unit is to ret: ": 2 of max 2 pods", or without max ": 2 pods". */
void policy_filter_say_count(const Policy *p, size_t unit, const PolicyUnitState *state, char *ret,
                             size_t size);
