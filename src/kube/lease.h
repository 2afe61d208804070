/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Lease object of coordination.k8s.io/v1, both ways. Pure. */

#include "base/arena.h"
#include "base/buf.h"

typedef struct Lease {
        Str resource_version, holder, acquire_time, renew_time;
        int64_t duration_seconds, transitions;
        char *owned; /* the texts' memory when they were copied */
} Lease;

/* The texts point into json and arena. 0, a positive number when the text is no Lease, or -ENOMEM. */
int lease_decode(Str json, Arena *arena, Lease *ret);
void lease_write(const Lease *lease, Str namespace_, Str name, Buf *out);

/* into becomes a copy that owns its texts; what it owned before is freed. 0 or -ENOMEM. */
int lease_copy(Lease *into, const Lease *from);
void lease_done(Lease *lease);

/* This moment as Kubernetes writes a MicroTime. */
void lease_now(char ret[static 40]);
