/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process's side of the slice page. It reserves bytes before it calls the driver. It releases
 * them when the driver refused the call, or when the memory is freed. */

#include "slice/page.h"

enum { SLICE_PATH = 256 };

#define SLICE_NO_ROW UINT32_MAX

/* This process's access to one slice. Without a row it can only read usage and limit. */
typedef struct SliceUser {
        const SliceLimits *limits;
        SliceCounters *counters;
        _Atomic uint32_t row;               /* SLICE_NO_ROW: nothing can be reserved */
        _Atomic uint32_t busy[SLICE_LANES]; /* by lane: 1 while a thread of this process uses it */
        _Atomic uint64_t last_reap;         /* ns, CLOCK_MONOTONIC_COARSE */
        /* bytes, as last read; used while the agent writes another limit */
        _Atomic uint64_t last_limit;
        /* descriptor of the driver's file in the last call; -1: none */
        _Atomic int file;
        _Atomic bool inherited; /* a child of fork has the counters mapped, too */
        bool borrows_limits;    /* the limits are another SliceUser's mapping */
        /* of counters, to check that a reopened file is the same */
        uint64_t dev, ino;
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

/* Like slice_open(), with a descriptor of the driver (-1: none) and a key (pin.h). The descriptor
 * serves to see whether files of dead processes are still open; others recognise this process's
 * files by the key. A child of fork does not inherit the counters: it keeps the row by the locked
 * files only. */
int slice_open_with(const char *directory, int file, uint64_t key, SliceUser *ret);

/* Like slice_open_with(), without -EUSERS. The row is one of the first SLICE_EARLY_ROWS: processes
 * that only read usage leave the others to those that reserve. If none of these is free, ret has no
 * row, and can only be read. */
enum { SLICE_EARLY_ROWS = SLICE_ROWS / 2 };
int slice_open_early(const char *directory, int file, uint64_t key, SliceUser *ret);

/* Takes a free row, any of the page, if s has none; file and key as in slice_open_with(). Returns
 * 0, also if s has a row; -EUSERS: no row is free; -ESTALE: the counters were replaced; the errors
 * of open, fcntl and mmap. Only one thread may call it at a time; others may use s meanwhile. */
int slice_need_row(SliceUser *s, int file, uint64_t key);

/* Takes one more row of the same slice; its lifetime is that of ret. With `adopt`, a dead process's
 * row with the same key that is still pinned is preferred, with what it holds. s must stay open as
 * long as ret. The errors of slice_open(), and -ESTALE: the counters were replaced. */
int slice_open_row(const SliceUser *s, int file, uint64_t key, bool adopt, SliceUser *ret);

/* The key of the rows for files that several processes use; the same in all processes of a
 * slice. */
uint64_t slice_shared_key(SliceUser *s);

/* For a process that could not lock a file of the driver: its children inherit the counters again,
 * and so keep the row until they call exec. */
void slice_inherit_on_fork(SliceUser *s);

/* Unmaps the page. What the row still holds can be reaped when the last copy of the mapping is
 * gone. */
void slice_close(SliceUser *s);

/* In a child of fork: closes the page that the parent opened. */
void slice_close_after_fork(SliceUser *s);

/* Reserves bytes, rounded up to SLICE_UNIT. Returns 0, or -ENOMEM: the container would hold more
 * than its limit, even after killed processes were reaped, or s has no row. Never allocates, keeps
 * errno, needs a few dozen instructions when there is room. May be called by any thread and in
 * signal handlers.
 *
 * Waits only while four other threads of the process are in the middle of the same call, at most
 * ten seconds. Then the answer is -ENOMEM, and a release is left to the end of the process. */
int slice_reserve(SliceUser *s, uint64_t bytes);
/* Like slice_reserve(), for a caller that tries again: a refusal is not counted. */
int slice_try(SliceUser *s, uint64_t bytes);
void slice_release(SliceUser *s, uint64_t bytes);

/* Moves bytes from one row to another of the same slice and process. In between they are counted
 * twice. Returns 0, or -ENOMEM (no lane became free, or the sum is too large): nothing was
 * moved. */
int slice_move(SliceUser *from, SliceUser *to, uint64_t bytes);

/* Returns the container's limit in bytes; the agent may change it at any time. */
uint64_t slice_limit(SliceUser *s);

/* Returns the bytes that all processes of the container hold, including dead ones not yet
 * reaped. */
uint64_t slice_used(const SliceUser *s);

/* Reaps, unless this process has reaped within the last millisecond. Returns whether it did. */
bool slice_refresh(SliceUser *s);

/* Gives back what dead processes held. Returns the number of rows freed. */
unsigned slice_reap(SliceUser *s);
