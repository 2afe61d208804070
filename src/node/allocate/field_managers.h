/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads metadata.managedFields (meta/v1 ManagedFieldsEntry): which client wrote a field last. An
 * entry owns the annotations that stand in its fieldsV1 below "f:metadata" and "f:annotations" as
 * "f:KEY". A key that was removed has no owner. Pure. */

#include "base/arena.h"
#include "base/fault.h"

typedef struct FieldManager {
        Str name;      /* "kubectl-annotate"; empty: there is none */
        Str operation; /* "Update" */
        Str time;      /* "2026-01-02T03:04:05Z" */
        /* it owns one of the keys; else it is the last that wrote anything but the status */
        bool owns;
} FieldManager;

enum { FIELD_MANAGERS_E_MALFORMED = 1 };
/* Finds the last manager that wrote one of these system keys. Bit i: the i-th of POD_SYSTEM_KEYS.
 * Where no entry owns one, it is the last manager that wrote the pod, other than `except`. pod: the
 * JSON text of the object; the strings point into it or into the arena. 0,
 * FIELD_MANAGERS_E_MALFORMED with a fault, or -ENOMEM. */
int field_managers_last(Str pod, uint32_t keys, Str except, Arena *arena, FieldManager *ret, Fault *fault);
