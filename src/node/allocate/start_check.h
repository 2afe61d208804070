/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One attempt to prove which container a PreStartContainer is for, and to prepare its start. Then
 * its record goes to disk, its slice pages are written, and the pod is marked as assigned. */

#include "node/allocate/evidence.h"
#include "node/allocate/node_context.h"
#include "node/allocate/orphans.h"
#include "node/allocate/repair.h"

typedef struct StartCheck {
        const NodeContext *node;
        Orphans *orphans;
        Repair *repair; /* NULL: none */
        DeviceKind kind;
        const DeviceSet *set;
        bool has_pages; /* an attempt made the slice pages, and ended with START_CHECK_E_LIMIT */
        bool late;      /* the call has waited for as long as it may */
} StartCheck;

enum {
        START_CHECK_E_WAIT = 1, /* likely to pass soon */
        START_CHECK_E_LIMIT,    /* the driver was asked: memory_limits tells of its answer */
        START_CHECK_E_REFUSED,  /* the pod must be changed or deleted */
        START_CHECK_E_LIST      /* the checkpoint does not show the devices: List may */
};

/* listed: what List showed of these devices; empty: it was not asked. 0: the container may start.
 * Else one of the above with a fault, or -ENOMEM. */
int start_check_run(const StartCheck *check, CheckpointFile *checkpoint, const Evidence *listed,
                    Fault *fault);
