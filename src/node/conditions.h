/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node conditions of this agent, as a Node object carries them (core/v1 NodeCondition).
 * Pure. */

#include "base/arena.h"
#include "base/fault.h"
#include "base/str.h"

typedef enum ConditionKind {
        CONDITION_CHANGE_PENDING, /* a change of mode or unit waits, or is refused */
        CONDITION_MISCONFIGURED,  /* a label or annotation of the node has a wrong value */
        CONDITIONS_,
} ConditionKind;

#define CONDITION_TYPE_CHANGE_PENDING "GPUShareChangePending"
#define CONDITION_TYPE_MISCONFIGURED  "GPUShareMisconfigured"

const char *condition_type(ConditionKind kind);

/* One condition; all empty where the node does not carry it. since: lastTransitionTime. */
typedef struct ConditionText {
        Str status, reason, message, since;
} ConditionText;

/* Reads them from the JSON text of a Node. The strings point into the text or the arena. Of a type
 * that stands twice the last one counts. Returns 0, CONDITIONS_E_MALFORMED with a fault, or
 * -ENOMEM. */
enum { CONDITIONS_E_MALFORMED = 1 };
int conditions_read(Str node, Arena *arena, ConditionText ret[static CONDITIONS_], Fault *fault);
