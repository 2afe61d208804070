/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The values that the system keys of a pod must have (POD_SYSTEM_KEYS), by the placement that the
 * roster has for it. Pure. */

#include "node/records/roster.h"

typedef struct PodKeys {
        Str text[POD_SYSTEM_KEYS_COUNT]; /* empty: the key must be absent */
} PodKeys;

/* pod: has a placement. assigned: its containers have started. The texts are in the arena and the
 * pod. 0 or -ENOMEM. */
int pod_keys_make(const RosterPod *pod, bool assigned, Arena *arena, PodKeys *ret);

/* Returns a bit mask: bit i is set where the i-th key of the pod's object has another value.
 * Allocations are compared by their entries, not by their text, because other writers format JSON
 * in other ways. */
uint32_t pod_keys_differ(const PodKeys *keys, const RosterPod *pod, Arena *arena);

/* Appends all of them as the annotations of a merge patch (RFC 7386): absent ones are null. */
void pod_keys_write(const PodKeys *keys, Buf *out);
