/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Objects of this process that open files hold, because they were exported to them. The memory
 * lives as long as the file, in whatever process its descriptors are, so the file is one more
 * holder of the charge. A lock shows whether the file is still open: the open file itself (OFD)
 * locks one byte of its inode, at a random offset, until its last descriptor is closed.
 *
 * Any process that has the file can export to the same index again. Each process takes a lock of
 * its own on the file before its first export to it, for good. If a process finds only its own lock
 * after the driver's answer, no other process has ever exported to the file. Each of its own calls
 * has a sequence number.
 *
 * Order: export_table_add_file(), once; export_table_next_sequence(); export_table_add() for each
 * object of the call; the driver; then export_table_confirm(), or, if the driver refused,
 * export_table_take() until none is left.
 *
 * Memory comes from mmap. Any thread and any signal handler may call these functions. If the lock
 * of the table or memory cannot be had, bytes stay charged. A table begins zeroed. */

#include "preload/memory/rm_objects.h"

typedef struct ExportedObject {
        uint64_t key;  /* key of its file */
        uint64_t call; /* sequence number of the export */
        /* sequence number from which the object is known to be in the file; or one of the two
         * below */
        uint64_t since;
        uint32_t charge; /* the charge that the file holds; 0: the bytes are the export's own */
        uint32_t units;
        uint32_t index;    /* index in the file */
        uint8_t card, row; /* as in Gate; row: the one that counts the bytes while no file does */
        bool in_file_row;  /* the files' row counts the bytes */
} ExportedObject;

#define EXPORT_PENDING  0          /* the driver has not answered yet */
#define EXPORT_UNLOCKED UINT64_MAX /* the file could not be locked: nothing is looked up in it */

typedef struct ExportFile {
        uint64_t key;      /* number of the locked byte */
        uint64_t dev, ino; /* of the file; 0: no other file has its inode (a dma-buf) */
        bool alone;        /* no other open file can lock the byte (pin_file_alone()) */
} ExportFile;

typedef struct ExportTable {
        Spin lock;
        _Atomic uint64_t sequence, replacements;
        /* read without the lock: 0 means that there is nothing to do */
        _Atomic uint32_t n, n_files;
        uint32_t size, files_size;
        ExportedObject *list;
        ExportFile *files;
} ExportTable;

static inline uint32_t export_table_count(ExportTable *e) {
        return atomic_load_explicit(&e->n, memory_order_relaxed);
}

static inline uint32_t export_table_files(ExportTable *e) {
        return atomic_load_explicit(&e->n_files, memory_order_relaxed);
}

int export_table_add_file(ExportTable *e, const ExportFile *file); /* 0 or -ENOMEM */
bool export_table_has_file(ExportTable *e, uint64_t key);
void export_table_drop_file(ExportTable *e, uint64_t key);

/* Reads file i, for a walk from the last to the first. Returns false if there is none. */
bool export_table_file_at(ExportTable *e, uint32_t i, ExportFile *ret);

/* Returns a number above all earlier ones; never EXPORT_PENDING or EXPORT_UNLOCKED. */
uint64_t export_table_next_sequence(ExportTable *e);

int export_table_add(ExportTable *e, const ExportedObject *object); /* 0 or -ENOMEM */
/* Marks the call's pending objects as known to be in the file. */
void export_table_confirm(ExportTable *e, uint64_t call);

/* Which objects export_table_take() takes. A field of 0 means any; before: objects known to be
 * there before that sequence number. */
typedef struct ExportFilter {
        uint64_t key, call, before;
        uint32_t first, n; /* indices; n 0: any */
} ExportFilter;

/* Takes one matching object out of the table. Returns false if there is none. */
bool export_table_take(ExportTable *e, const ExportFilter *filter, ExportedObject *ret);

/* Returns a number that changes when an object is taken out by a filter with `before`. A caller
 * that reads the table before and after a call of the driver compares it: an object may have come
 * and gone. */
static inline uint64_t export_table_replacements(ExportTable *e) {
        return atomic_load(&e->replacements);
}

/* Writes into calls[] which export calls put objects at n indices of the file from the first.
 * EXPORT_AMBIGUOUS: several calls, or a pending one. An entry that is not 0 before counts as
 * found. */
#define EXPORT_AMBIGUOUS UINT64_MAX
void export_table_find_calls(ExportTable *e, uint64_t key, uint32_t first, uint32_t n, uint64_t *calls);

/* Adds a holder to the charge of an exported object, which rm_objects_drop_charge() ends. false: no
 * such object, or it has no charge to share. */
bool export_table_ref(ExportTable *e, uint64_t call, uint32_t index, RmObjects *o, ExportedObject *ret);

void export_table_after_fork(ExportTable *e); /* in a child: the exports are the parent's */
