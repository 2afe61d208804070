/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process's side of the slice page: reserve before the driver is called, release when it refused or when memory is freed. */

#include "slice/page.h"

typedef struct Slice {
        const SliceLimits *limits;
        SliceCounters *counters;
        uint32_t row;
        _Atomic uint32_t busy[SLICE_LANES]; /* taken by a thread of this process */
        _Atomic uint64_t
                last_reap; /* CLOCK_MONOTONIC_COARSE, ns: nobody is looked for twice in one millisecond */
} Slice;

/* Maps both files of a directory and takes a row. In a child of fork the parent's row must not be used: whoever notices the fork
 * opens again and leaves the old mappings where they are, because they stand for what the parent and the child share.
 * 0; -EPROTO: not a slice page, another major version, or shorter than it must be; -EUSERS: no row is free, even after reaping;
 * other negative errno of open, mmap and fcntl. ret is untouched on failure. */
int slice_open(const char *directory, Slice *ret);
void slice_close(
        Slice *s); /* what the row still holds comes back when the last copy of the mapping is gone */

/* 0, or -ENOMEM: the container would hold more than its limit, even after what killed processes held came back. bytes are rounded
 * up to SLICE_UNIT. Never blocks, never allocates, keeps errno; a few dozen instructions when there is room. */
int slice_reserve(Slice *s, uint64_t bytes);
void slice_release(Slice *s, uint64_t bytes);

uint64_t slice_limit(const Slice *s); /* bytes; what the agent says now */
uint64_t slice_used(const Slice *s);  /* bytes, by all processes of the container */

/* Gives back what dead processes held. Returns how many rows were freed. */
unsigned slice_reap(Slice *s);
