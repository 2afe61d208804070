/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Charges that have several holders: duplicates of one object, and open files that it was exported
 * to. The last holder gives it back.
 *
 * A charge is in the row of its object, or, as long as a file is among its holders, in that of the
 * files (gate.h, GateRow): who adds the first or drops the last moves it.
 *
 * Memory comes from mmap. All functions may be called by any thread and in signal handlers; who
 * does not get the lock leaves a holder too many, and the charge until the process ends. Shares
 * must be zero at first; numbers of shares are never 0. */

#include "preload/inject/spin.h"

typedef struct Share {
        uint32_t refs;    /* holders; of an unused one, the next */
        uint32_t exports; /* files among them whose row has the bytes */
} Share;

typedef struct Shares {
        Spin lock;
        uint32_t size, n, free; /* free: number of the first unused one, linked by refs */
        Share *list;
} Shares;

uint32_t shares_new(
        Shares *s); /* its first two holders: who was alone, and who asks. 0: no memory, or no lock */
bool shares_ref(Shares *s, uint32_t share);  /* of one that somebody holds; false: no lock */
bool shares_drop(Shares *s, uint32_t share); /* true: it was the last */

/* A holder becomes an open file, or ends as one. */
typedef enum ShareEnd {
        SHARE_STAYS, /* other files have the bytes, or there is no lock */
        SHARE_BACK,  /* the last file, and others hold them: they go back to their row */
        SHARE_FREED, /* the last holder */
} ShareEnd;
bool shares_is_exported(Shares *s, uint32_t share);
int shares_add_export(Shares *s, uint32_t share); /* 1: the first, 0: not, -1: no lock */
ShareEnd shares_drop_export(Shares *s, uint32_t share);

void shares_after_fork(Shares *s); /* in the child, by its only thread: all is forgotten */
