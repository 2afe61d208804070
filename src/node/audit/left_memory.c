/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/left_memory.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/process_stat.h"
#include "node/records/holders.h"

enum {
        ANCESTORS_MAX = 32,
        LEFT_MAX = 4096,
        TICKS = 100, /* per second: USER_HZ, which is the same on all of our architectures */
};

typedef struct LeftKey {
        uint32_t card, pid;
} LeftKey;

typedef struct LeftPid {
        UT_hash_handle hh;
        LeftKey key;
        /* in ticks: the driver first named the memory in this time; 0: not known */
        uint64_t since, until;
        ProcessOwner owner; /* uid "": charged to none */
        bool named;         /* this census named it */
} LeftPid;

/* ---- holders ---- */

void left_memory_done_holders(LeftHolders *h) {
        free(h->list);
        *h = (LeftHolders){0};
}

static bool add_holder(LeftHolders *h, const LeftHolder *one) {
        if (h->n == h->room) {
                size_t room = h->room > 0 ? 2 * h->room : 16;
                LeftHolder *more = realloc(h->list, room * sizeof *more);

                if (!more)
                        return false;
                h->list = more;
                h->room = room;
        }
        h->list[h->n++] = *one;
        return true;
}

static bool same_owner(const ProcessOwner *a, const ProcessOwner *b) {
        return strcmp(a->uid, b->uid) == 0 && strcmp(a->container, b->container) == 0;
}

bool left_memory_is_told(const LeftHolders *h, size_t i) {
        bool any = false;

        for (size_t k = 0; k < h->n; k++)
                any |= !h->list[k].inherits;
        for (size_t k = 0; k < i; k++)
                if (h->list[k].inherits == h->list[i].inherits &&
                    same_owner(&h->list[k].owner, &h->list[i].owner))
                        return false;
        return h->list[i].inherits == !any;
}

static bool is_named(const LeftSearch *s, uint32_t pid) {
        for (size_t i = 0; i < s->n_named; i++)
                if (s->named[i] == pid)
                        return true;
        return false;
}

static bool inherits_memory(const LeftSearch *s, const LeftHolder *holder) {
        ProcessOwner owner;
        uint32_t pid = holder->pid;

        for (int i = 0; i < ANCESTORS_MAX; i++) {
                if (!process_stat_parent(s->proc, pid, &pid) || !process_owner_of(s->proc, pid, &owner) ||
                    !same_owner(&owner, &holder->owner))
                        return false;
                if (is_named(s, pid))
                        return true;
        }
        return false;
}

static bool has_slice(const LeftSearch *s, const Record *record) {
        CardIndexes card = {0};

        card_indexes_add(&card, s->card);
        return record && holders_record_is_on(record, &card);
}

static bool is_holder(const LeftSearch *s, uint32_t pid, LeftHolder *ret) {
        *ret = (LeftHolder){.pid = pid};
        if (!process_owner_of(s->proc, pid, &ret->owner) ||
            !has_slice(s, records_find(s->records, str_from(ret->owner.uid))) || is_named(s, pid) ||
            card_files_of(s->proc, pid, s->files) != CARD_FILES_SOME)
                return false;
        (void) process_stat_start_time(s->proc, pid, &ret->start);
        ret->inherits = inherits_memory(s, ret);
        return true;
}

void left_memory_find_holders(const LeftSearch *s, LeftHolders *ret) {
        DIR *processes = opendir(s->proc);
        const struct dirent *entry;
        size_t n_pods = 0;
        LeftHolder one;
        uint64_t pid;

        for (const Record *r = s->records->by_uid; r; r = r->hh.next)
                n_pods += has_slice(s, r);
        ret->alone = n_pods == 1;
        while (processes && (entry = readdir(processes)))
                if (str_to_u64(str_from(entry->d_name), &pid) && pid <= UINT32_MAX &&
                    is_holder(s, (uint32_t) pid, &one) && !add_holder(ret, &one)) {
                        left_memory_done_holders(ret);
                        break;
                }
        if (processes)
                (void) closedir(processes);
}

/* ---- which container ---- */

static void forget_pid(LeftMemory *m, LeftPid *p) {
        HASH_DELETE(hh, m->pids, p);
        free(p);
}

void left_memory_done(LeftMemory *m) {
        while (m->pids)
                forget_pid(m, m->pids);
}

void left_memory_begin(LeftMemory *m, usec_t asked, usec_t came) {
        m->before = m->asked;
        m->asked = asked / (USEC_PER_SEC / TICKS);
        m->came = came / (USEC_PER_SEC / TICKS);
        for (LeftPid *p = m->pids; p; p = p->hh.next)
                p->named = false;
}

void left_memory_end(LeftMemory *m) {
        LeftPid *p, *next;

        HASH_ITER(hh, m->pids, p, next)
        if (!p->named)
                forget_pid(m, p);
}

static LeftPid *entry_of(LeftMemory *m, LeftKey key) {
        LeftPid *p;

        HASH_FIND(hh, m->pids, &key, sizeof key, p);
        if (p || HASH_COUNT(m->pids) >= LEFT_MAX || !(p = calloc(1, sizeof *p)))
                return p;
        p->key = key;
        if (m->before > 0 && m->came > 0) {
                p->since = m->before;
                p->until = m->came;
        }
        HASH_ADD(hh, m->pids, key, sizeof p->key, p);
        if (hash_added(p, hh))
                return p;
        free(p);
        return NULL;
}

/* The only container with holders of its own; NULL: there is none, or there are several. uid: of a
 * pod; NULL: of any. */
static const ProcessOwner *only_container(const LeftHolders *holders, const char *uid) {
        const ProcessOwner *only = NULL;

        for (size_t i = 0; i < holders->n; i++) {
                const LeftHolder *h = &holders->list[i];

                if (h->inherits || (uid && strcmp(h->owner.uid, uid) != 0))
                        continue;
                if (only && !same_owner(only, &h->owner))
                        return NULL;
                only = &h->owner;
        }
        return only;
}

static bool began_with(const LeftPid *p, const LeftHolders *holders) {
        for (size_t i = 0; i < holders->n; i++) {
                const LeftHolder *h = &holders->list[i];

                if (!h->inherits && h->start > 0 && h->start >= p->since && h->start <= p->until)
                        return true;
        }
        return false;
}

const ProcessOwner *left_memory_judge(LeftMemory *m, uint32_t card, uint32_t pid,
                                      const LeftHolders *holders) {
        const ProcessOwner *only = only_container(holders, NULL);
        LeftPid *p = entry_of(m, (LeftKey){card, pid});

        if (!p)
                return NULL; /* out of memory, or LEFT_MAX entries: it is reported for the card */
        p->named = true;
        if (only && (holders->alone || began_with(p, holders)))
                p->owner = *only;
        else if (!only || !same_owner(only, &p->owner))
                p->owner = (ProcessOwner){0};
        return p->owner.uid[0] != '\0' ? &p->owner : NULL;
}

const ProcessOwner *left_memory_heir(const LeftHolders *holders, const ProcessOwner *former) {
        return only_container(holders, former->uid);
}

bool left_memory_has_holder(const LeftHolders *holders, const ProcessOwner *owner) {
        for (size_t i = 0; i < holders->n; i++)
                if (same_owner(&holders->list[i].owner, owner))
                        return true;
        return false;
}
