/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose is a pid that the driver names? Memory lives as long as the driver's file is open, which a
 * process can leave to others (fork, SCM_RIGHTS) and end: the driver goes on naming its pid. So
 * what is read of a process while it lives is remembered as long as the driver names it, with its
 * start time: a pid that somebody else has by now is nobody's, neither his nor the old one's,
 * unless both are of the same container. Not remembered is who ended before the first census that
 * named him. */

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

void pid_owner_cache_done(PidOwnerCache *w);

void pid_owner_cache_begin(PidOwnerCache *w); /* of a census */
/* *ret is set unless NOBODY. */
PidOwnerState pid_owner_cache_find(PidOwnerCache *w, uint32_t pid, ProcessOwner *ret);
void pid_owner_cache_end(PidOwnerCache *w); /* whom the driver names no longer is forgotten */
