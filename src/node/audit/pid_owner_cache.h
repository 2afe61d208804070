/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pod and container a pid of the driver belongs to. Memory lives as long as the driver's file
 * is open. A process can leave that file to others (fork, SCM_RIGHTS) and end, and the driver goes
 * on naming its pid. So what was read of a process while it lived is remembered as long as the
 * driver names it, together with its start time.
 *
 * A pid that was reused belongs to no container, neither the old nor the new one, unless both are
 * the same. A process that ended before the first census that named it is not known. */

#include "base/cleanup.h"
#include "node/kubelet/process_owner.h"

typedef enum PidOwnerState {
        PID_OWNER_NONE, /* in no pod, or not known */
        PID_OWNER_LIVES,
        PID_OWNER_ENDED, /* the owner is remembered */
} PidOwnerState;

typedef struct PidOwnerCache {
        struct CachedPid *pids;
        const char *proc; /* outlives it */
} PidOwnerCache;

void pid_owner_cache_done(PidOwnerCache *c);

void pid_owner_cache_begin(PidOwnerCache *c); /* begins a census */
/* *ret is set unless PID_OWNER_NONE. */
PidOwnerState pid_owner_cache_find(PidOwnerCache *c, uint32_t pid, ProcessOwner *ret);
void pid_owner_cache_end(PidOwnerCache *c); /* forgets pids that the driver no longer names */
