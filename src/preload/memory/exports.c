/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/exports.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "preload/inject/bytes.h"

enum { EXPORTS_MIN = 64, EXPORTS_MAX = 1 << 20 };

/* Room for one more: another list, twice as large. NULL: there is none. */
static void *grow(void *list, uint32_t *size, size_t each) {
        uint32_t larger = *size == 0 ? EXPORTS_MIN : *size * 2;
        long p;

        if (larger > EXPORTS_MAX)
                return NULL;
        p = sys_call(SYS_mmap, 0, larger * each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p < 0 && p > -4096)
                return NULL;
        if (list) {
                bytes_copy((void *) p, list, *size * each);
                (void) sys_call(SYS_munmap, list, *size * each); /* ours */
        }
        *size = larger;
        return (void *) p;
}

/* ---- files ---- */

static bool add_file(Exports *e, const ExportFile *file) {
        uint32_t n = exports_files(e);

        if (n == e->files_size) {
                ExportFile *files = grow(e->files, &e->files_size, sizeof *files);

                if (!files)
                        return false;
                e->files = files;
        }
        e->files[n] = *file;
        atomic_store_explicit(&e->n_files, n + 1, memory_order_relaxed);
        return true;
}

int exports_add_file(Exports *e, const ExportFile *file) {
        bool added;

        if (!spin_take(&e->lock))
                return -ENOMEM;
        added = add_file(e, file);
        spin_drop(&e->lock);
        return added ? 0 : -ENOMEM;
}

static ExportFile *find_file(Exports *e, uint64_t key) {
        for (uint32_t i = 0; i < exports_files(e); i++)
                if (e->files[i].key == key)
                        return &e->files[i];
        return NULL;
}

bool exports_have_file(Exports *e, uint64_t key) {
        bool there;

        if (!spin_take(&e->lock))
                return false;
        there = find_file(e, key) != NULL;
        spin_drop(&e->lock);
        return there;
}

void exports_drop_file(Exports *e, uint64_t key) {
        ExportFile *file;

        if (!spin_take(&e->lock))
                return;
        file = find_file(e, key);
        if (file) {
                uint32_t last = exports_files(e) - 1;

                *file = e->files[last];
                atomic_store_explicit(&e->n_files, last, memory_order_relaxed);
        }
        spin_drop(&e->lock);
}

bool exports_file_at(Exports *e, uint32_t i, ExportFile *ret) {
        bool there;

        if (!spin_take(&e->lock))
                return false;
        there = i < exports_files(e);
        if (there)
                *ret = e->files[i];
        spin_drop(&e->lock);
        return there;
}

/* ---- what is in them ---- */

uint64_t exports_turn(Exports *e) {
        return atomic_fetch_add(&e->turn, 1) + 1;
}

static bool is_there(const Export *x) {
        return x->since != EXPORT_ASKED && x->since != EXPORT_UNSEEN;
}

static bool add(Exports *e, const Export *export_) {
        uint32_t n = exports_count(e);

        if (n == e->size) {
                Export *list = grow(e->list, &e->size, sizeof *list);

                if (!list)
                        return false;
                e->list = list;
        }
        e->list[n] = *export_;
        atomic_store_explicit(&e->n, n + 1, memory_order_relaxed);
        return true;
}

int exports_add(Exports *e, const Export *export_) {
        bool added;

        if (!spin_take(&e->lock))
                return -ENOMEM;
        added = add(e, export_);
        spin_drop(&e->lock);
        return added ? 0 : -ENOMEM;
}

void exports_confirm(Exports *e, uint64_t call) {
        uint64_t turn = exports_turn(e);

        if (!spin_take(&e->lock))
                return;
        for (uint32_t i = 0; i < exports_count(e); i++)
                if (e->list[i].call == call && e->list[i].since == EXPORT_ASKED)
                        e->list[i].since = turn;
        spin_drop(&e->lock);
}

static bool is_wanted(const Export *x, const ExportsWanted *w) {
        return (w->key == 0 || x->key == w->key) && (w->call == 0 || x->call == w->call) &&
               (w->before == 0 || (is_there(x) && x->since < w->before)) &&
               (w->n == 0 || (x->place >= w->first && x->place - w->first < w->n));
}

bool exports_take(Exports *e, const ExportsWanted *wanted, Export *ret) {
        uint32_t n, i = 0;

        if (!spin_take(&e->lock))
                return false;
        n = exports_count(e);
        while (i < n && !is_wanted(&e->list[i], wanted))
                i++;
        if (i < n) {
                if (wanted->before != 0)
                        atomic_fetch_add(&e->replaced, 1);
                *ret = e->list[i];
                e->list[i] = e->list[n - 1];
                atomic_store_explicit(&e->n, n - 1, memory_order_relaxed);
        }
        spin_drop(&e->lock);
        return i < n;
}

void exports_look(Exports *e, uint64_t key, uint32_t first, uint32_t n, uint64_t *calls) {
        if (!spin_take(&e->lock)) {
                for (uint32_t i = 0; i < n; i++)
                        calls[i] = EXPORTS_UNSURE;
                return;
        }
        for (uint32_t i = 0; i < exports_count(e); i++) {
                const Export *x = &e->list[i];
                uint32_t at = x->place - first;

                if (x->key == key && x->place >= first && at < n)
                        calls[at] = calls[at] == 0 && is_there(x) ? x->call : EXPORTS_UNSURE;
        }
        spin_drop(&e->lock);
}

/* Under the lock of the list: as long as it is in there its own reference is, too. */
bool exports_ref(Exports *e, uint64_t call, uint32_t place, Objects *o, Export *ret) {
        bool held = false;

        if (!spin_take(&e->lock))
                return false;
        for (uint32_t i = 0; i < exports_count(e) && !held; i++) {
                const Export *x = &e->list[i];

                if (x->call == call && x->place == place) {
                        *ret = *x;
                        held = x->share != 0 && shares_ref(&o->shares, x->share);
                }
        }
        spin_drop(&e->lock);
        return held;
}

void exports_after_fork(Exports *e) {
        e->list = NULL; /* its memory stays: another thread may have been in the middle of it */
        e->files = NULL;
        e->size = e->files_size = 0;
        atomic_store_explicit(&e->n_files, 0, memory_order_relaxed);
        atomic_store_explicit(&e->n, 0, memory_order_relaxed);
        spin_drop(&e->lock);
}
