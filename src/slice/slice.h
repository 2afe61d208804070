/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process's side of the slice page: reserve before the driver is called, release when it refused
 * or when memory is freed. */

#include "slice/page.h"

enum { SLICE_PATH = 256 };

typedef struct SliceUser { /* this process, with a row */
        const SliceLimits *limits;
        SliceCounters *counters;
        uint32_t row;
        _Atomic uint32_t busy[SLICE_LANES]; /* taken by a thread of this process */
        _Atomic uint64_t
                last_reap; /* CLOCK_MONOTONIC_COARSE, ns: nobody is looked for twice in one millisecond */
        _Atomic uint64_t
                last_limit;     /* bytes; what holds while the agent is in the middle of writing another */
        _Atomic int file;       /* one of the driver's, on which the last call came in; -1: none */
        _Atomic bool inherited; /* a child of fork has its counters mapped, too */
        bool borrows_limits;    /* the limits are another's mapping */
        uint64_t dev, ino;      /* of counters: reaping opens them again, and must get the same */
        char path[SLICE_PATH];
} SliceUser;

/* Maps both files of a directory and takes a row. No descriptor stays open. In a child of fork the parent's row must not be used:
 * whoever notices the fork closes and opens again. Without a key (pin.h) the row ends with its mapping.
 * 0; -EPROTO: not a slice page, another major version, or shorter than it must be; -EUSERS: no row is free, even after reaping;
 * -ENAMETOOLONG: directory/counters does not fit SLICE_PATH; other negative errno of open, fstat, mmap and fcntl (-EINVAL: a
 * kernel without OFD locks, before 3.15). ret is untouched on failure. */
int slice_open(const char *directory, SliceUser *ret);

/* The same for who has a file of the driver at hand (-1: none), by which it is seen whether those
 * of the dead are open still, and who says by which key that will be seen of his own (pin.h). A
 * child of fork does not have its counters: it keeps the row by the files only. */
int slice_open_with(const char *directory, int file, uint64_t key, SliceUser *ret);

/* One more row of the same slice, whose bytes have an end of their own. With `adopt`, one of a dead
 * process that has the same key and is kept by it is taken first, with what it holds. s must stay
 * open as long. The same errors, and -ESTALE: the counters are other ones by now. */
int slice_open_row(const SliceUser *s, int file, uint64_t key, bool adopt, SliceUser *ret);

/* The key of rows for files that more than one process uses: everybody's who has this slice. */
uint64_t slice_shared_key(SliceUser *s);

/* For who could not lock a file of the driver: the children of fork have the counters again, and
 * keep the row by that, until they call exec. */
void slice_inherit_on_fork(SliceUser *s);

void slice_close(
        SliceUser *s); /* what the row still holds comes back when the last copy of the mapping is gone */
void slice_close_after_fork(SliceUser *s); /* in the child, the parent's */

/* 0, or -ENOMEM: the container would hold more than its limit, even after what killed processes
 * held came back. bytes are rounded up to SLICE_UNIT. Never allocates, keeps errno; a few dozen
 * instructions when there is room. May be called by any thread and in signal handlers. Waits only
 * when four other threads of the process are in the middle of it; after ten seconds of that the
 * answer is -ENOMEM, too, and a release is left to the end of the process. */
int slice_reserve(SliceUser *s, uint64_t bytes);
void slice_release(SliceUser *s, uint64_t bytes);

/* What one row holds is the other's from now on, of the same slice and process. In between it is
 * counted twice, and never not. 0, or -ENOMEM: it stays where it is. */
int slice_move(SliceUser *from, SliceUser *to, uint64_t bytes);

uint64_t slice_limit(SliceUser *s); /* bytes; what the agent says now */
uint64_t slice_used(
        const SliceUser
                *s); /* bytes, by all processes of the container, the dead who were not reaped included */

/* The same before a question is answered: at most once in a millisecond per process, with those
 * that slice_reserve() makes. true: it looked. */
bool slice_refresh(SliceUser *s);

/* Gives back what dead processes held, at once. Returns how many rows were freed. */
unsigned slice_reap(SliceUser *s);
