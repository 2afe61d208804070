/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Turns the driver's answers about memory into those of the slice: the total is the limit, free is
 * what the container has left, and neither exceeds what the driver said. Pure: bytes in, bytes
 * out. */

#include <stdbool.h>

#include "gpu/rm/rm.h"

typedef struct RewriteView {
        /* bytes of the slice, and of those the bytes that the whole container uses */
        uint64_t limit, used;
        const char *version; /* the driver's version; NULL: not known, or not needed */
} RewriteView;

/* Whether the meaning of an index of FB info depends on the driver's version. */
bool rewrite_fb_needs_version(uint32_t index);

/* Returns the data of one FB info entry for the application, in KiB. An index that is not a size
 * keeps its data. One whose meaning is not known for exactly this version is taken for one of free
 * memory. */
uint32_t rewrite_fb(const RewriteView *view, uint32_t index, uint32_t data);

/* Returns a word of RmUgpuMemory, or of the driver's statistics, for the application; at: its
 * number in the structure. Each half of the card has half of the slice. Of the statistics only the
 * first words are known: a version, the total in five words, and the free bytes. The others are the
 * owners'. */
uint64_t rewrite_ugpu(const RewriteView *view, uint32_t at, uint64_t bytes);
uint64_t rewrite_stats(const RewriteView *view, uint32_t at, uint64_t bytes);

/* Ends the card's regions at the limit. regions: n bytes of an RmFbRegions. */
void rewrite_regions(const RewriteView *view, void *regions, uint32_t n);

/* Rewrites an RmHeap of function INFO: total, free and the largest free block. */
void rewrite_heap(const RewriteView *view, void *heap);

/* Rewrites an RmAllocMemory: the size of the heap, less one. */
void rewrite_limit(const RewriteView *view, void *memory);
