/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of this process that an open file has, too, because it was exported to that: it lives as long as the file, whoever has a
 * descriptor of it. So the file is one more holder of the charge. Whether it is still open is seen by a lock: a byte of the file's inode,
 * whose number is random, is locked by the open file itself (OFD), until its last descriptor, wherever, is closed.
 *
 * Order: exports_add() for all that one call exports; the driver; then exports_confirm() or, when it refused, exports_take() until there
 * are none. Memory comes from mmap. All functions may be called by any thread and in signal handlers; what does not get the lock or no
 * memory stays charged. Exports must be zero at first. */

#include "gate/objects.h"

typedef struct Export {
        uint64_t key;      /* of the call: the byte that is locked */
        uint64_t dev, ino; /* of the file */
        uint32_t share;    /* which this is a holder of; 0: the bytes are its own */
        uint32_t units;
        uint32_t place;    /* in the file */
        uint8_t card, row; /* of the gate; the row that has the bytes when no file has */
        bool apart;        /* the files' own row has them */
        bool pending;      /* the driver is being asked, or the lock could not be had: it is not looked for */
} Export;

typedef struct Exports {
        Spin lock;
        _Atomic uint32_t n; /* read without the lock: 0, and there is nothing to do */
        uint32_t size;
        Export *list;
} Exports;

static inline uint32_t exports_count(Exports *e) {
        return atomic_load_explicit(&e->n, memory_order_relaxed);
}

int exports_add(Exports *e, const Export *export_); /* 0 or -ENOMEM */
void exports_confirm(Exports *e, uint64_t key, uint64_t dev, uint64_t ino);

/* The i-th one, for looking through them from the last to the first; false: there is none. */
bool exports_at(Exports *e, uint32_t i, Export *ret);

/* Takes one out: of that key, and of that place unless it is EXPORTS_ANY. false: there is none. */
#define EXPORTS_ANY UINT32_MAX
bool exports_take(Exports *e, uint64_t key, uint32_t place, Export *ret);

/* One more holder of what that one shares, which objects_drop_share() ends. false: none of that key and place, or it shares nothing. */
bool exports_ref(Exports *e, uint64_t key, uint32_t place, Objects *o, Export *ret);

void exports_after_fork(Exports *e); /* the parent's are the parent's, and its row's */
