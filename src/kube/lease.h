/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Lease object, as text and as what an elector decides on. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"

typedef struct Lease {
        Str metadata; /* raw: resourceVersion, and labels and annotations that are not ours to lose */
        Str resource_version;
        Str holder; /* "" when nobody holds it */
        int64_t duration_sec;
        int64_t transitions;
        Str acquire_time, renew_time; /* for people; only ever compared for "has it changed" */
} Lease;

enum { LEASE_E_MALFORMED = 1 };

/* Views of json and arena. 0, LEASE_E_MALFORMED or -ENOMEM. */
int lease_decode(Str json, Arena *arena, Lease *ret, Fault *fault);

/* The whole object for POST and PUT. metadata empty: a new one with this name. */
void lease_write(Buf *out, const Lease *lease, const char *namespace_, const char *name);
