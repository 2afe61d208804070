/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/export_table.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "preload/inject/bytes.h"

enum { EXPORTS_MIN = 64, EXPORTS_MAX = 1 << 20 };

/* Returns a list of twice the size, in place of the old one. NULL: no memory. */
static void *grow_list(void *list, uint32_t *size, size_t each) {
        uint32_t larger = *size == 0 ? EXPORTS_MIN : *size * 2;
        long p;

        if (larger > EXPORTS_MAX)
                return NULL;
        p = sys_call(SYS_mmap, 0, larger * each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p < 0 && p > -4096)
                return NULL;
        if (list) {
                bytes_copy((void *) p, list, *size * each);
                (void) sys_call(SYS_munmap, list, *size * each); /* our own mapping */
        }
        *size = larger;
        return (void *) p;
}

/* ---- files ---- */

static bool add_file(ExportTable *e, const ExportFile *file) {
        uint32_t n = export_table_files(e);

        if (n == e->files_size) {
                ExportFile *files = grow_list(e->files, &e->files_size, sizeof *files);

                if (!files)
                        return false;
                e->files = files;
        }
        e->files[n] = *file;
        atomic_store_explicit(&e->n_files, n + 1, memory_order_relaxed);
        return true;
}

int export_table_add_file(ExportTable *e, const ExportFile *file) {
        bool added;

        if (!spin_take(&e->lock))
                return -ENOMEM;
        added = add_file(e, file);
        spin_drop(&e->lock);
        return added ? 0 : -ENOMEM;
}

static ExportFile *find_file(ExportTable *e, uint64_t key) {
        for (uint32_t i = 0; i < export_table_files(e); i++)
                if (e->files[i].key == key)
                        return &e->files[i];
        return NULL;
}

bool export_table_has_file(ExportTable *e, uint64_t key) {
        bool there;

        if (!spin_take(&e->lock))
                return false;
        there = find_file(e, key) != NULL;
        spin_drop(&e->lock);
        return there;
}

void export_table_drop_file(ExportTable *e, uint64_t key) {
        ExportFile *file;

        if (!spin_take(&e->lock))
                return;
        file = find_file(e, key);
        if (file) {
                uint32_t last = export_table_files(e) - 1;

                *file = e->files[last];
                atomic_store_explicit(&e->n_files, last, memory_order_relaxed);
        }
        spin_drop(&e->lock);
}

bool export_table_file_at(ExportTable *e, uint32_t i, ExportFile *ret) {
        bool there;

        if (!spin_take(&e->lock))
                return false;
        there = i < export_table_files(e);
        if (there)
                *ret = e->files[i];
        spin_drop(&e->lock);
        return there;
}

/* ---- exported objects ---- */

uint64_t export_table_next_sequence(ExportTable *e) {
        return atomic_fetch_add(&e->sequence, 1) + 1;
}

static bool is_there(const ExportedObject *x) {
        return x->since != EXPORT_PENDING && x->since != EXPORT_UNLOCKED;
}

static bool add_object(ExportTable *e, const ExportedObject *object) {
        uint32_t n = export_table_count(e);

        if (n == e->size) {
                ExportedObject *list = grow_list(e->list, &e->size, sizeof *list);

                if (!list)
                        return false;
                e->list = list;
        }
        e->list[n] = *object;
        atomic_store_explicit(&e->n, n + 1, memory_order_relaxed);
        return true;
}

int export_table_add(ExportTable *e, const ExportedObject *object) {
        bool added;

        if (!spin_take(&e->lock))
                return -ENOMEM;
        added = add_object(e, object);
        spin_drop(&e->lock);
        return added ? 0 : -ENOMEM;
}

void export_table_confirm(ExportTable *e, uint64_t call) {
        uint64_t sequence = export_table_next_sequence(e);

        if (!spin_take(&e->lock))
                return;
        for (uint32_t i = 0; i < export_table_count(e); i++)
                if (e->list[i].call == call && e->list[i].since == EXPORT_PENDING)
                        e->list[i].since = sequence;
        spin_drop(&e->lock);
}

static bool is_wanted(const ExportedObject *x, const ExportFilter *w) {
        return (w->key == 0 || x->key == w->key) && (w->call == 0 || x->call == w->call) &&
               (w->before == 0 || (is_there(x) && x->since < w->before)) &&
               (w->n == 0 || (x->index >= w->first && x->index - w->first < w->n));
}

bool export_table_take(ExportTable *e, const ExportFilter *filter, ExportedObject *ret) {
        uint32_t n, i = 0;

        if (!spin_take(&e->lock))
                return false;
        n = export_table_count(e);
        while (i < n && !is_wanted(&e->list[i], filter))
                i++;
        if (i < n) {
                if (filter->before != 0)
                        atomic_fetch_add(&e->replacements, 1);
                *ret = e->list[i];
                e->list[i] = e->list[n - 1];
                atomic_store_explicit(&e->n, n - 1, memory_order_relaxed);
        }
        spin_drop(&e->lock);
        return i < n;
}

void export_table_find_calls(ExportTable *e, uint64_t key, uint32_t first, uint32_t n, uint64_t *calls) {
        if (!spin_take(&e->lock)) {
                for (uint32_t i = 0; i < n; i++)
                        calls[i] = EXPORT_AMBIGUOUS;
                return;
        }
        for (uint32_t i = 0; i < export_table_count(e); i++) {
                const ExportedObject *x = &e->list[i];
                uint32_t at = x->index - first;

                if (x->key == key && x->index >= first && at < n)
                        calls[at] = calls[at] == 0 && is_there(x) ? x->call : EXPORT_AMBIGUOUS;
        }
        spin_drop(&e->lock);
}

/* Adds the reference under the lock of the table: an object that is in it has a reference of its
 * own. */
bool export_table_ref(ExportTable *e, uint64_t call, uint32_t index, RmObjects *o, ExportedObject *ret) {
        bool held = false;

        if (!spin_take(&e->lock))
                return false;
        for (uint32_t i = 0; i < export_table_count(e) && !held; i++) {
                const ExportedObject *x = &e->list[i];

                if (x->call == call && x->index == index) {
                        *ret = *x;
                        held = x->charge != 0 && charges_ref(&o->charges, x->charge);
                }
        }
        spin_drop(&e->lock);
        return held;
}

void export_table_after_fork(ExportTable *e) {
        e->list = NULL; /* not unmapped: another thread may have been changing it */
        e->files = NULL;
        e->size = e->files_size = 0;
        atomic_store_explicit(&e->n_files, 0, memory_order_relaxed);
        atomic_store_explicit(&e->n, 0, memory_order_relaxed);
        spin_drop(&e->lock);
}
