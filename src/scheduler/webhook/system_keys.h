/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system keys of a pod at admission: those of POD_SYSTEM_KEYS, and the mark of a
 * ResourcePolicy, which the node agent does not know. A new pod carries none, and only system
 * accounts change one. A new pod carries none of the keys that resize a running pod either
 * (wire/resize_keys.h); users may change those later. All are decoded apart from the rest of the
 * pod, so that a pod that cannot be decoded for another reason is treated in the same way. */

#include "wire/pod.h"

enum {
        SYSTEM_KEYS_POLICY = POD_SYSTEM_KEYS_COUNT,
        SYSTEM_KEYS_RESIZE_MEM, /* behind the system keys */
        SYSTEM_KEYS_RESIZE_CORE,
        SYSTEM_KEYS_COUNT,
};

typedef struct SystemKeys {
        Str namespace_, name, generate_name; /* of the pod */
        /* In the order of pod_system_key_names, then the mark of a ResourcePolicy and the keys of a
         * resize; empty where absent. */
        Str values[SYSTEM_KEYS_COUNT];
} SystemKeys;

enum { SYSTEM_KEYS_E_MALFORMED = 1 };

/* Views of json and arena. 0; SYSTEM_KEYS_E_MALFORMED with a fault when the metadata cannot be
 * read; or -ENOMEM. */
int system_keys_read(Str json, Arena *arena, SystemKeys *ret, Fault *fault);

/* Bit i: the i-th system key differs. An absent key and an empty one are the same. */
uint32_t system_keys_changed(const SystemKeys *old, const SystemKeys *now);

/* Bit i: a new pod has the i-th of all keys, and must not have it. */
uint32_t system_keys_of_new(const SystemKeys *now);

/* Appends the operations of a JSON patch that removes these keys, without the brackets around them
 * and with a comma between them. */
void system_keys_write_removal(uint32_t keys, Buf *out);

/* Appends the warning about the i-th key, which is removed from the new pod: pod, key and rule. At
 * most 256 bytes for a key of ours: the API server cuts a warning there
 * (staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning.go, truncateItemRunes). */
void system_keys_warn(const SystemKeys *now, size_t i, Buf *out);

/* Appends why the user may not make this change. changed: not 0. */
void system_keys_refuse(const SystemKeys *old, const SystemKeys *now, uint32_t changed, Str user, Buf *why);
