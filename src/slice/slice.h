/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process's side of the slice page. It reserves bytes before it calls the driver. It releases
 * them when the driver refused the call, or when the memory is freed. */

#include "slice/page.h"

enum { SLICE_PATH = 256 };

#define SLICE_NO_ROW UINT32_MAX

/* This process, with a row or only with questions. */
typedef struct SliceUser {
        const SliceLimits *limits;
        SliceCounters *counters;
        _Atomic uint32_t row;               /* SLICE_NO_ROW: nothing can be reserved */
        _Atomic uint32_t busy[SLICE_LANES]; /* in use by a thread of this process */
        _Atomic uint64_t last_reap;         /* ns, CLOCK_MONOTONIC_COARSE */
        _Atomic uint64_t last_limit;        /* bytes; used while the agent writes another */
        _Atomic int file;                   /* the driver's file of the last call; -1: none */
        _Atomic bool inherited;             /* a child of fork has the counters mapped, too */
        bool borrows_limits;                /* the limits are another SliceUser's mapping */
        uint64_t dev, ino;                  /* of counters: a file opened again must be the same */
        char path[SLICE_PATH];
} SliceUser;

/* Maps both files of the directory and takes a row, which lasts as long as the mapping. No
 * descriptor stays open. A child of fork must not use its parent's row: it closes the page and
 * opens it again.
 *
 * 0 on success; ret is untouched on failure. -EPROTO: not a slice page, another version, or
 * too short. -EUSERS: no row is free, even after reaping. -ENAMETOOLONG: DIRECTORY/counters does
 * not fit SLICE_PATH. Other negative errno of open, fstat, mmap and fcntl; -EINVAL: the kernel has
 * no OFD locks (before 3.15). */
int slice_open(const char *directory, SliceUser *ret);

/* The same with a file of the driver (-1: none) and a key (pin.h). The file serves to see whether
 * files of dead processes are still open; the key is how others see that of this process. A child
 * of fork does not inherit the counters: it keeps the row by the locked files only. */
int slice_open_with(const char *directory, int file, uint64_t key, SliceUser *ret);

/* The same, without -EUSERS. The row is one of the first SLICE_EARLY_ROWS: processes that only ask
 * leave the others to those that reserve. If none of these is free, ret has no row, and answers
 * questions only. */
enum { SLICE_EARLY_ROWS = SLICE_ROWS / 2 };
int slice_open_early(const char *directory, int file, uint64_t key, SliceUser *ret);

/* Takes a row if s has none, one of all, by the same file and key. 0, also if s has one; -EUSERS:
 * no row is free; -ESTALE: the counters were replaced; the errors of open, fcntl and mmap. Not for
 * two threads at a time; others may use s meanwhile. */
int slice_need_row(SliceUser *s, int file, uint64_t key);

/* One more row of the same slice, whose bytes end separately. With `adopt`, a row of a dead process
 * with the same key that is still pinned is preferred, with what it holds. s must stay open as long
 * as ret. The errors of slice_open(), and -ESTALE: the counters were replaced. */
int slice_open_row(const SliceUser *s, int file, uint64_t key, bool adopt, SliceUser *ret);

/* The key of the rows for files that several processes use; the same in all processes of a
 * slice. */
uint64_t slice_shared_key(SliceUser *s);

/* For a process that could not lock a file of the driver: its children inherit the counters again,
 * and so keep the row until they call exec. */
void slice_inherit_on_fork(SliceUser *s);

/* What the row still holds comes back when the last copy of the mapping is gone. */
void slice_close(SliceUser *s);

/* In a child of fork: closes the parent's. */
void slice_close_after_fork(SliceUser *s);

/* 0, or -ENOMEM: the container would hold more than its limit, even after killed processes were
 * reaped. bytes are rounded up to SLICE_UNIT. Never allocates, keeps errno, needs a few dozen
 * instructions when there is room. May be called by any thread and in signal handlers.
 *
 * Waits only while four other threads of the process are in the middle of the same call, at most
 * ten seconds. Then the answer is -ENOMEM, and a release is left to the end of the process. */
int slice_reserve(SliceUser *s, uint64_t bytes);
void slice_release(SliceUser *s, uint64_t bytes);

/* Moves bytes from one row to another of the same slice and process. In between they are counted
 * twice. 0, or -ENOMEM: nothing was moved. */
int slice_move(SliceUser *from, SliceUser *to, uint64_t bytes);

/* Bytes; as the agent says now. */
uint64_t slice_limit(SliceUser *s);

/* Bytes that all processes of the container hold, with dead ones that were not reaped. */
uint64_t slice_used(const SliceUser *s);

/* Reaps, unless this process has reaped within the last millisecond. Returns whether it did. */
bool slice_refresh(SliceUser *s);

/* Gives back what dead processes held. Returns the number of rows freed. */
unsigned slice_reap(SliceUser *s);
