/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a ResourcePolicy needs to know of a pod. It is decoded separately from Pod (wire/pod.h), and
 * only in namespaces that have a policy. */

#include "wire/object.h"
#include "wire/string_map.h"

typedef struct PolicyMember {
        StringMap labels, annotations;
        bool scheduled; /* the condition PodScheduled is True */
        /* failed: PodScheduled is False after an attempt; gated: False because of a scheduling
         * gate. */
        bool failed, gated;
        uint64_t since; /* lastTransitionTime of PodScheduled, seconds since 1970; 0: not known */
        bool nominated; /* status.nominatedNodeName is set: that node alone may be offered */
} PolicyMember;

/* Decodes the text of a pod. Returns 0, OBJECT_E_MALFORMED with a fault that names the path (*ret
 * untouched; fault may be NULL), or -ENOMEM. The result points into the text and the arena. */
int policy_member_decode(Str pod, Arena *arena, PolicyMember *ret, Fault *fault);
