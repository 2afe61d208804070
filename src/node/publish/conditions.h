/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The conditions of a Node object that belong to this agent (core/v1 NodeCondition). Pure. */

#include "wire/node.h"

typedef enum ConditionKind {
        CONDITION_CHANGE_PENDING, /* a change of mode or unit is pending or refused */
        CONDITION_MISCONFIGURED,  /* a label or annotation of the node has a wrong value */
        CONDITION_DRIVER,         /* the driver's release is older or newer than those we know */
        CONDITION_OTHER_PLUGIN,   /* another plugin offers the same cards */
        CONDITION_CORDON,         /* an annotation keeps new slices from some of its cards */
        CONDITION_CARDS,          /* cards are out of service, by what the driver says */
        CONDITION_LIMITS,         /* memory is to be limited by the driver, which cannot */
        CONDITIONS_,
} ConditionKind;

#define CONDITION_TYPE_CHANGE_PENDING "GPUShareChangePending"
#define CONDITION_TYPE_MISCONFIGURED  "GPUShareMisconfigured"
#define CONDITION_TYPE_DRIVER         "GPUShareDriverUnsupported"
#define CONDITION_TYPE_OTHER_PLUGIN   "GPUShareOtherPlugin"
#define CONDITION_TYPE_CORDON         "GPUShareCardsCordoned"
#define CONDITION_TYPE_CARDS          "GPUShareCardsOutOfService"

const char *condition_type(ConditionKind kind);

/* Reads the conditions from the JSON text of a Node, as views of the text or the arena; all texts
 * of one that the node does not have are empty. If a type occurs twice, the last one counts.
 * Returns 0, CONDITIONS_E_MALFORMED with a fault, or -ENOMEM. */
enum { CONDITIONS_E_MALFORMED = 1 };
int conditions_read(Str node, Arena *arena, ObjectCondition ret[static CONDITIONS_], Fault *fault);
