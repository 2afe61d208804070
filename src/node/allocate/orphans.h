/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Slices of pods that are gone from the API server while processes of theirs still run: deletion by
 * force removes the object at once. Until the last process ends, the pod's record stays and is
 * published in the node's annotation aliquot.dev/held-slices. A container that is given the same
 * devices waits at PreStart. */

#include "base/buf.h"
#include "node/allocate/node_context.h"

typedef struct Orphans Orphans;

typedef struct OrphansOptions {
        const NodeContext *node;
        const char *cgroup_root;           /* outlives it */
        void (*on_change)(void *userdata); /* called when the list of orphans has changed */
        void *userdata;
} OrphansOptions;

int orphans_new(const OrphansOptions *options, Orphans **ret); /* 0 or -ENOMEM */
Orphans *orphans_free(Orphans *o);

/* Makes the record of a pod an orphan, drops it, or keeps it. Call it when the pod came, changed or
 * went (pod NULL). */
void orphans_look(Orphans *o, Str uid, const RosterPod *pod);

/* Whether the last process of a pod that is gone has ended. Then its record is dropped. */
bool orphans_ended(Orphans *o, Record *record);

/* Once the pods have been listed: looks at every record of a pod that is gone. */
void orphans_sweep(Orphans *o);

size_t orphans_count(const Orphans *o);
/* The annotation's text, "" when there are no orphans: share/held.h has the format. */
void orphans_write(const Orphans *o, Buf *out);
