/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/exports.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

enum { EXPORTS_MIN = 64, EXPORTS_MAX = 1 << 20 };

static int grow(Exports *e) {
        uint32_t size = e->size == 0 ? EXPORTS_MIN : e->size * 2;
        Export *list;
        long p;

        if (size > EXPORTS_MAX)
                return -ENOMEM;
        p = sys_call(SYS_mmap, 0, size * sizeof *list, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
        if (p < 0 && p > -4096)
                return -ENOMEM;
        list = (Export *) p;
        for (uint32_t i = 0; i < exports_count(e); i++)
                list[i] = e->list[i];
        if (e->list)
                (void) sys_call(SYS_munmap, e->list, e->size * sizeof *list); /* ours */
        e->list = list;
        e->size = size;
        return 0;
}

int exports_add(Exports *e, const Export *export_) {
        uint32_t n;
        int r = 0;

        if (!spin_take(&e->lock))
                return -ENOMEM;
        n = exports_count(e);
        if (n == e->size)
                r = grow(e);
        if (r == 0) {
                e->list[n] = *export_;
                atomic_store_explicit(&e->n, n + 1, memory_order_relaxed);
        }
        spin_drop(&e->lock);
        return r;
}

uint64_t exports_turn(Exports *e) {
        return atomic_fetch_add_explicit(&e->turn, 1, memory_order_relaxed) + 1;
}

void exports_confirm(Exports *e, uint64_t key, uint64_t dev, uint64_t ino) {
        uint64_t turn = exports_turn(e);

        if (!spin_take(&e->lock))
                return;
        for (uint32_t i = 0; i < exports_count(e); i++)
                if (e->list[i].key == key && e->list[i].since == EXPORT_ASKED) {
                        e->list[i].dev = dev;
                        e->list[i].ino = ino;
                        e->list[i].since = turn;
                }
        spin_drop(&e->lock);
}

bool exports_at(Exports *e, uint32_t i, Export *ret) {
        bool there;

        if (!spin_take(&e->lock))
                return false;
        there = i < exports_count(e);
        if (there)
                *ret = e->list[i];
        spin_drop(&e->lock);
        return there;
}

static Export *find(Exports *e, uint64_t key, uint32_t place) {
        for (uint32_t i = 0; i < exports_count(e); i++)
                if (e->list[i].key == key && (place == EXPORTS_ANY || e->list[i].place == place))
                        return &e->list[i];
        return NULL;
}

bool exports_take(Exports *e, uint64_t key, uint32_t place, Export *ret) {
        Export *found;

        if (!spin_take(&e->lock))
                return false;
        found = find(e, key, place);
        if (found) {
                uint32_t last = exports_count(e) - 1;

                *ret = *found;
                *found = e->list[last];
                atomic_store_explicit(&e->n, last, memory_order_relaxed);
        }
        spin_drop(&e->lock);
        return found != NULL;
}

bool exports_have(Exports *e, uint64_t key) {
        bool there;

        if (!spin_take(&e->lock))
                return false;
        there = find(e, key, EXPORTS_ANY) != NULL;
        spin_drop(&e->lock);
        return there;
}

/* Under the lock of the list: as long as it is in there its own reference is, too. */
bool exports_ref(Exports *e, uint64_t key, uint32_t place, Objects *o, Export *ret) {
        const Export *found;
        bool held;

        if (!spin_take(&e->lock))
                return false;
        found = find(e, key, place);
        held = found && found->share != 0 && shares_ref(&o->shares, found->share);
        if (held)
                *ret = *found;
        spin_drop(&e->lock);
        return held;
}

void exports_after_fork(Exports *e) {
        e->list = (Export *) 0; /* its memory stays: another thread may have been in the middle of it */
        e->size = 0;
        atomic_store_explicit(&e->n, 0, memory_order_relaxed);
        spin_drop(&e->lock);
}
