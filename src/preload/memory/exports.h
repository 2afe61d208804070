/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of this process that an open file has, too, because it was exported to that: it lives as
 * long as the file, whoever has a descriptor of it. So the file is one more holder of the charge.
 * Whether it is still open is seen by a lock: a byte of the file's inode, whose number is random,
 * is locked by the open file itself (OFD), until its last descriptor, wherever, is closed.
 *
 * A place of a file may be exported to again, by whoever has the file, in the same or another
 * process. Each process has a lock of its own on it, before it asks the driver for the first time,
 * and for good. So who finds none but his own, after the driver has spoken, knows that nobody else
 * has ever put anything there; and each of his own calls has a number.
 *
 * Order: exports_add_file(), once; exports_turn(); exports_add() for all that the call exports; the
 * driver; then exports_confirm() or, when it refused, exports_take() until there are none. Memory
 * comes from mmap. All functions may be called by any thread and in signal handlers; what does not
 * get the lock of the list, or no memory, stays charged. Exports must be zero at first. */

#include "preload/memory/objects.h"

typedef struct Export {
        uint64_t key;   /* of its file */
        uint64_t call;  /* its number: exports_turn() */
        uint64_t since; /* the turn from which on it is known to be there; or one of the two below */
        uint32_t share; /* which this is a holder of; 0: the bytes are its own */
        uint32_t units;
        uint32_t place;    /* in the file */
        uint8_t card, row; /* of the gate; the row that has the bytes when no file has */
        bool apart;        /* the files' own row has them */
} Export;

#define EXPORT_ASKED  0          /* the driver is being asked */
#define EXPORT_UNSEEN UINT64_MAX /* the file could not be locked: it is not looked for */

typedef struct ExportFile {
        uint64_t key;      /* the byte that is locked */
        uint64_t dev, ino; /* of the file */
} ExportFile;

typedef struct Exports {
        Spin lock;
        _Atomic uint64_t turn, replaced; /* how many were taken out because of what came into their places */
        _Atomic uint32_t n;              /* read without the lock: 0, and there is nothing to do */
        _Atomic uint32_t n_files;
        uint32_t size, files_size;
        Export *list;
        ExportFile *files;
} Exports;

static inline uint32_t exports_count(Exports *e) {
        return atomic_load_explicit(&e->n, memory_order_relaxed);
}

static inline uint32_t exports_files(Exports *e) {
        return atomic_load_explicit(&e->n_files, memory_order_relaxed);
}

int exports_add_file(Exports *e, const ExportFile *file); /* 0 or -ENOMEM */
bool exports_have_file(Exports *e, uint64_t key);
void exports_drop_file(Exports *e, uint64_t key);

/* The i-th one, for looking through them from the last to the first; false: there is none. */
bool exports_file_at(Exports *e, uint32_t i, ExportFile *ret);

/* A number that is later than all before; never one of the two above. */
uint64_t exports_turn(Exports *e);

int exports_add(Exports *e, const Export *export_); /* 0 or -ENOMEM */
void exports_confirm(Exports *e, uint64_t call);    /* those of it for which the driver was asked */

/* Takes one out that is wanted. 0 in key, call and before: any; otherwise what was there before
 * that turn. false: there is none. */
typedef struct ExportsWanted {
        uint64_t key, call, before;
        uint32_t first, n; /* places; n 0: any */
} ExportsWanted;
bool exports_take(Exports *e, const ExportsWanted *wanted, Export *ret);

/* Changes whenever something was taken out that had been there before a turn: who looks twice, and
 * in between at the driver, may have missed something that came and went. */
static inline uint64_t exports_replaced(Exports *e) {
        return atomic_load(&e->replaced);
}

/* What is at the n places from the first on: calls[] gets the number of the call that put it there,
 * or EXPORTS_UNSURE where there are several, or the driver is being asked about one. What is in
 * calls[] already counts as found before. */
#define EXPORTS_UNSURE UINT64_MAX
void exports_look(Exports *e, uint64_t key, uint32_t first, uint32_t n, uint64_t *calls);

/* One more holder of what that one shares, which objects_drop_share() ends. false: none of that
 * call and place, or it shares nothing. */
bool exports_ref(Exports *e, uint64_t call, uint32_t place, Objects *o, Export *ret);

void exports_after_fork(Exports *e); /* the parent's are the parent's, and its row's */
