/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system keys of a pod at admission: those of POD_SYSTEM_KEYS, and the mark of a
 * ResourcePolicy, which the node agent does not know. A new pod has none, and only system accounts
 * change one. Nor has a new pod any of the keys that resize a running pod (wire/resize_keys.h);
 * users may set those later. All are decoded apart from the rest of the pod: so they are treated
 * alike when the pod cannot be decoded. */

#include "wire/pod.h"

enum {
        SYSTEM_KEYS_POLICY = POD_SYSTEM_KEYS_COUNT,
        SYSTEM_KEYS_RESIZE_MEM, /* follow the system keys */
        SYSTEM_KEYS_RESIZE_CORE,
        SYSTEM_KEYS_COUNT,
};

typedef struct SystemKeys {
        Str namespace_, name, generate_name; /* metadata of the pod */
        /* By key, in the order of pod_system_key_names, then the mark of a ResourcePolicy and the
         * keys of a resize; empty: absent. */
        Str values[SYSTEM_KEYS_COUNT];
} SystemKeys;

enum { SYSTEM_KEYS_E_MALFORMED = 1 };

/* *ret points into json and arena. Returns 0; SYSTEM_KEYS_E_MALFORMED with a fault when the
 * metadata cannot be read; or -ENOMEM. */
int system_keys_read(Str json, Arena *arena, SystemKeys *ret, Fault *fault);

/* Bit i: the i-th system key differs. An absent key and an empty one are the same. */
uint32_t system_keys_changed(const SystemKeys *old, const SystemKeys *now);

/* Bit i: key i is set, and a new pod must not have it. */
uint32_t system_keys_of_new(const SystemKeys *now);

/* Appends operations of a JSON patch that remove these keys, separated by commas, without brackets
 * around them. */
void system_keys_write_removal(uint32_t keys, Buf *out);

/* Appends the warning that key i was removed from the new pod: pod, key and rule. For our keys it
 * has at most 256 bytes, at which the API server cuts
 * (staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning.go, truncateItemRunes). */
void system_keys_warn(const SystemKeys *now, size_t i, Buf *out);

/* Appends why this user may not change the first of these keys. changed: not 0. */
void system_keys_refuse(const SystemKeys *old, const SystemKeys *now, uint32_t changed, Str user, Buf *why);
