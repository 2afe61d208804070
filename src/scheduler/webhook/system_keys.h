/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system keys of a pod (POD_SYSTEM_KEYS) at admission: a new pod carries none, and only system
 * accounts change one. They are decoded apart from the rest of the pod, so that a pod that cannot
 * be decoded for another reason is treated in the same way. */

#include "wire/pod.h"

typedef struct SystemKeys {
        Str namespace_, name; /* of the pod */
        /* In the order of pod_system_key_names; empty where absent. */
        Str values[POD_SYSTEM_KEYS_COUNT];
} SystemKeys;

enum { SYSTEM_KEYS_E_MALFORMED = 1 };

/* Views of json and arena. 0; SYSTEM_KEYS_E_MALFORMED with a fault when the metadata cannot be
 * read; or -ENOMEM. */
int system_keys_read(Str json, Arena *arena, SystemKeys *ret, Fault *fault);

/* Bit i: the i-th key differs. An absent key and an empty one are the same. old: NULL for a new
 * pod. */
uint32_t system_keys_changed(const SystemKeys *old, const SystemKeys *now);

/* Appends the operations of a JSON patch that removes these keys, without the brackets around them
 * and with a comma between them. */
void system_keys_write_removal(uint32_t keys, Buf *out);

/* Appends why the user may not make this change. changed: not 0. */
void system_keys_refuse(const SystemKeys *old, const SystemKeys *now, uint32_t changed, Str user, Buf *why);
