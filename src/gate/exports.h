/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of this process that an open file has, too, because it was exported to that: it lives as long as the file, whoever has a
 * descriptor of it. So the file is one more holder of the charge. Whether it is still open is seen by a lock: a byte of the file's inode,
 * whose number is random, is locked by the open file itself (OFD), until its last descriptor, wherever, is closed.
 *
 * A place of a file may be exported to again, by whoever has the file, in the same or another process: the lock is there before the driver
 * is asked, so that who finds none but his own, after the driver has spoken, knows that what was there is his.
 *
 * Order: the lock; exports_add() for all that one call exports; the driver; then exports_confirm() or, when it refused, exports_take() until
 * there are none. Memory comes from mmap. All functions may be called by any thread and in signal handlers; what does not get the lock or no
 * memory stays charged. Exports must be zero at first. */

#include "gate/objects.h"

typedef struct Export {
        uint64_t key;      /* of the call: the byte that is locked */
        uint64_t since;    /* the turn from which on it is known to be there; or one of the two below */
        uint64_t dev, ino; /* of the file */
        uint32_t share;    /* which this is a holder of; 0: the bytes are its own */
        uint32_t units;
        uint32_t place;    /* in the file */
        uint8_t card, row; /* of the gate; the row that has the bytes when no file has */
        bool apart;        /* the files' own row has them */
} Export;

#define EXPORT_ASKED  0          /* the driver is being asked */
#define EXPORT_UNSEEN UINT64_MAX /* the lock could not be had: it is not looked for */

static inline bool export_is_there(const Export *x) {
        return x->since != EXPORT_ASKED && x->since != EXPORT_UNSEEN;
}

typedef struct Exports {
        Spin lock;
        _Atomic uint64_t turn;
        _Atomic uint32_t n; /* read without the lock: 0, and there is nothing to do */
        uint32_t size;
        Export *list;
} Exports;

static inline uint32_t exports_count(Exports *e) {
        return atomic_load_explicit(&e->n, memory_order_relaxed);
}

int exports_add(Exports *e, const Export *export_); /* 0 or -ENOMEM */

/* Those that were there when this was asked have an earlier one, and those that come to be there a later one. */
uint64_t exports_turn(Exports *e);

/* Those of the key for which the driver was asked. */
void exports_confirm(Exports *e, uint64_t key, uint64_t dev, uint64_t ino);

/* The i-th one, for looking through them from the last to the first; false: there is none. */
bool exports_at(Exports *e, uint32_t i, Export *ret);

/* Takes one out: of that key, and of that place unless it is EXPORTS_ANY. false: there is none. */
#define EXPORTS_ANY UINT32_MAX
bool exports_take(Exports *e, uint64_t key, uint32_t place, Export *ret);

/* Is there one of that key? */
bool exports_have(Exports *e, uint64_t key);

/* One more holder of what that one shares, which objects_drop_share() ends. false: none of that key and place, or it shares nothing. */
bool exports_ref(Exports *e, uint64_t key, uint32_t place, Objects *o, Export *ret);

void exports_after_fork(Exports *e); /* the parent's are the parent's, and its row's */
