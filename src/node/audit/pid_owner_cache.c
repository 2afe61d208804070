/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/pid_owner_cache.h"

#include "base/hash.h"
#include "node/kubelet/process_state.h"

/* A driver that could not tell a card's processes once has not freed them. And a bound on what we
 * keep. */
enum { ABSENT_MAX = 8, REMEMBERED_MAX = 8192 };

typedef struct CachedPid {
        UT_hash_handle hh;
        uint32_t pid;
        uint64_t start; /* 0: not known */
        ProcessOwner owner;
        unsigned absent; /* censuses in a row that did not name it */
        bool named;      /* by this one */
        bool reused;     /* somebody else has the pid, and the driver has named it all the time */
} CachedPid;

static void forget(PidOwnerCache *w, CachedPid *p) {
        HASH_DELETE(hh, w->pids, p);
        free(p);
}

void pid_owner_cache_done(PidOwnerCache *w) {
        CachedPid *p, *next;

        HASH_ITER(hh, w->pids, p, next)
        forget(w, p);
}

void pid_owner_cache_begin(PidOwnerCache *w) {
        for (CachedPid *p = w->pids; p; p = p->hh.next)
                p->named = false;
}

void pid_owner_cache_end(PidOwnerCache *w) {
        CachedPid *p, *next;

        HASH_ITER(hh, w->pids, p, next) {
                p->absent = p->named ? 0 : p->absent + 1;
                if (p->absent > (p->reused ? 0 : ABSENT_MAX))
                        forget(w, p);
        }
}

/* Without memory for it, it is told as long as it lives. */
static void remember(PidOwnerCache *w, uint32_t pid, uint64_t start, const ProcessOwner *owner) {
        CachedPid *p;

        if (HASH_COUNT(w->pids) >= REMEMBERED_MAX || !(p = calloc(1, sizeof *p)))
                return;
        *p = (CachedPid){.pid = pid, .start = start, .owner = *owner, .named = true};
        HASH_ADD(hh, w->pids, pid, sizeof p->pid, p);
        if (!hash_added(p, hh))
                free(p);
}

static bool is_other(const CachedPid *p, uint64_t start) {
        return start > 0 && p->start > 0 && start != p->start;
}

static bool same_owner(const ProcessOwner *a, const ProcessOwner *b) {
        return strcmp(a->uid, b->uid) == 0 && strcmp(a->container, b->container) == 0;
}

PidOwnerState pid_owner_cache_find(PidOwnerCache *w, uint32_t pid, ProcessOwner *ret) {
        ProcessOwner owner;
        uint64_t start = 0;
        bool lives;
        CachedPid *p;

        (void) process_state_start_time(w->proc, pid, &start);
        lives = process_owner_of(w->proc, pid, &owner);
        HASH_FIND(hh, w->pids, &pid, sizeof pid, p);
        if (p && p->absent > 0 && is_other(p, start)) { /* what the old one had is gone since */
                forget(w, p);
                p = NULL;
        }
        if (!p) {
                if (!lives)
                        return PID_OWNER_NONE;
                remember(w, pid, start, &owner);
                *ret = owner;
                return PID_OWNER_LIVES;
        }
        p->named = true;
        if (is_other(p, start) && !(lives && same_owner(&owner, &p->owner))) {
                p->reused = true;
                return PID_OWNER_NONE;
        }
        if (lives)
                p->owner = owner;
        *ret = p->owner;
        return lives ? PID_OWNER_LIVES : PID_OWNER_ENDED;
}
