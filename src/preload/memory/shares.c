/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/shares.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

enum { SHARES_MIN = 512, SHARES_MAX = 1 << 26 };

static int grow(Shares *s) {
        uint32_t size = s->size == 0 ? SHARES_MIN : s->size * 2;
        Share *list;
        long p;

        if (size >= SHARES_MAX)
                return -ENOMEM;
        p = sys_call(SYS_mmap, 0, size * sizeof *list, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
        if (p < 0 && p > -4096)
                return -ENOMEM;
        list = (Share *) p;
        for (uint32_t i = 1; i <= s->n && s->list; i++)
                list[i] = s->list[i];
        if (s->list)
                (void) sys_call(SYS_munmap, s->list, s->size * sizeof *list); /* ours */
        s->list = list;
        s->size = size;
        return 0;
}

uint32_t shares_new(Shares *s) {
        uint32_t share = 0;

        if (!spin_take(&s->lock))
                return 0;
        if (s->free != 0) {
                share = s->free;
                s->free = s->list[share].refs;
        } else if (s->n + 1 < s->size || grow(s) == 0) {
                share = ++s->n;
        }
        if (share != 0)
                s->list[share] = (Share){.refs = 2};
        spin_drop(&s->lock);
        return share;
}

bool shares_ref(Shares *s, uint32_t share) {
        if (!spin_take(&s->lock))
                return false;
        s->list[share].refs++;
        spin_drop(&s->lock);
        return true;
}

static bool drop_in(Shares *s, uint32_t share) {
        if (--s->list[share].refs > 0)
                return false;
        s->list[share] = (Share){.refs = s->free};
        s->free = share;
        return true;
}

bool shares_drop(Shares *s, uint32_t share) {
        bool last;

        if (!spin_take(&s->lock))
                return false;
        last = drop_in(s, share);
        spin_drop(&s->lock);
        return last;
}

/* ---- files ---- */

bool shares_is_exported(Shares *s, uint32_t share) {
        bool exported;

        if (!spin_take(&s->lock))
                return false;
        exported = s->list[share].exports > 0;
        spin_drop(&s->lock);
        return exported;
}

int shares_add_export(Shares *s, uint32_t share) {
        int first;

        if (!spin_take(&s->lock))
                return -1;
        first = s->list[share].exports++ == 0;
        spin_drop(&s->lock);
        return first;
}

ShareEnd shares_drop_export(Shares *s, uint32_t share) {
        bool last, freed;

        if (!spin_take(&s->lock))
                return SHARE_STAYS;
        last = --s->list[share].exports == 0;
        freed = drop_in(s, share);
        spin_drop(&s->lock);
        if (freed)
                return SHARE_FREED;
        return last ? SHARE_BACK : SHARE_STAYS;
}

/* One that was being changed keeps its memory: who knows what was being done to it. */
void shares_after_fork(Shares *s) {
        if (s->list && atomic_load_explicit(&s->lock.owner, memory_order_relaxed) == 0)
                (void) sys_call(SYS_munmap, s->list, s->size * sizeof *s->list); /* ours */
        s->list = NULL;
        s->size = s->n = s->free = 0;
        spin_drop(&s->lock);
}
