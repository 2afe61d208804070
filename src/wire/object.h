/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every Kubernetes object has. The decoders of pod.h and node.h read the parts that sharing a
 * GPU depends on. An object is a view of its JSON text: every Str points into that text or into the
 * arena, so that a caller copies what it keeps. Unknown fields are skipped; fields of the wrong
 * type are refused with their path. */

#include "base/arena.h"
#include "base/fault.h"

enum { OBJECT_E_MALFORMED = 1 };

typedef struct ObjectMeta {
        Str name, namespace_, uid, resource_version, creation_timestamp;
        bool terminating;   /* deletionTimestamp is set */
        Str controller_uid; /* the UID in the ownerReference with controller: true */
} ObjectMeta;

/* An element of status.conditions; since: lastTransitionTime. */
typedef struct ObjectCondition {
        Str type, status, reason, message, since;
} ObjectCondition;

/* Finds the top-level `kind` of any object; it is empty when there is none. The text is read only
 * up to there: in a mixed list the decoder for that kind reads it again. */
int object_kind(Str json, Arena *arena, Str *ret, Fault *fault);
