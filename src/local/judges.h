/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the programs of a cluster say of an object when it is applied, in their own words. The
 * node's agent judges the keys of its node (share/node_keys.h). The webhook judges pods and
 * workloads (scheduler/webhook/review.h), and the scheduler ResourcePolicies
 * (scheduler/policy/policy_spec.h). Nothing is refused by it. */

#include <jansson.h>

#include "base/buf.h"

/* Receives a note: one sentence. Returns 0 or negative errno, which ends the judgement. */
typedef int (*JudgesNote)(void *userdata, const char *text);

/* object: a manifest with apiVersion and kind; other kinds get no note. A GPU request that the
 * scheduler refuses gets no note, because the scheduler reports it. A rule of a pod that this
 * cluster does not judge is named, too. Returns 0, -ENOMEM, or what a note returned. */
int judges_ask(const json_t *object, JudgesNote note, void *userdata);

/* Appends the members of its pod's spec and containers that nothing here looks at, as
 * "spec.volumes" and "spec.containers[].ports". Each stands there once, with ", " between, and no
 * more than JUDGES_UNREAD_MAX. */
enum { JUDGES_UNREAD_MAX = 6 };
void judges_add_unread(const json_t *object, Buf *names);
