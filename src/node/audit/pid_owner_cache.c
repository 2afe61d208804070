/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/pid_owner_cache.h"

#include "base/hash.h"
#include "base/process_stat.h"

enum {
        /* censuses that an entry outlives: a driver that once fails to list processes has not freed
         * them */
        ABSENT_MAX = 8,
        REMEMBERED_MAX = 8192
};

typedef struct CachedPid {
        UT_hash_handle hh;
        uint32_t pid;
        uint64_t start; /* 0: not known */
        ProcessOwner owner;
        unsigned absent; /* censuses in a row that did not name it */
        bool named;      /* this census named it */
        bool reused;     /* another process has the pid, and each census has named it */
} CachedPid;

static void forget(PidOwnerCache *c, CachedPid *p) {
        HASH_DELETE(hh, c->pids, p);
        free(p);
}

void pid_owner_cache_done(PidOwnerCache *c) {
        while (c->pids)
                forget(c, c->pids);
}

void pid_owner_cache_begin(PidOwnerCache *c) {
        for (CachedPid *p = c->pids; p; p = p->hh.next)
                p->named = false;
}

void pid_owner_cache_end(PidOwnerCache *c) {
        CachedPid *p, *next;

        HASH_ITER(hh, c->pids, p, next) {
                p->absent = p->named ? 0 : p->absent + 1;
                if (p->absent > (p->reused ? 0 : ABSENT_MAX))
                        forget(c, p);
        }
}

/* Out of memory, or beyond REMEMBERED_MAX, the owner is known only while the process lives. */
static void remember(PidOwnerCache *c, uint32_t pid, uint64_t start, const ProcessOwner *owner) {
        CachedPid *p;

        if (HASH_COUNT(c->pids) >= REMEMBERED_MAX || !(p = calloc(1, sizeof *p)))
                return;
        *p = (CachedPid){.pid = pid, .start = start, .owner = *owner, .named = true};
        HASH_ADD(hh, c->pids, pid, sizeof p->pid, p);
        if (!hash_added(p, hh))
                free(p);
}

static bool is_other(const CachedPid *p, uint64_t start) {
        return start > 0 && p->start > 0 && start != p->start;
}

static bool same_owner(const ProcessOwner *a, const ProcessOwner *b) {
        return strcmp(a->uid, b->uid) == 0 && strcmp(a->container, b->container) == 0;
}

PidOwnerState pid_owner_cache_find(PidOwnerCache *c, uint32_t pid, ProcessOwner *ret) {
        ProcessOwner owner;
        uint64_t start = 0;
        bool lives;
        CachedPid *p;

        (void) process_stat_start_time(c->proc, pid, &start);
        lives = process_owner_of(c->proc, pid, &owner);
        HASH_FIND(hh, c->pids, &pid, sizeof pid, p);
        if (p && p->absent > 0 && is_other(p, start)) { /* the memory of the old process is freed */
                forget(c, p);
                p = NULL;
        }
        if (!p) {
                if (!lives)
                        return PID_OWNER_NONE;
                remember(c, pid, start, &owner);
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
