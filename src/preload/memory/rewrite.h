/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Turns the driver's answers about memory into those of the slice: the total is the limit, free is
 * what the container has left, and neither exceeds what the driver said. Pure: bytes in, bytes
 * out. */

#include "gpu/rm/rm.h"

typedef struct RewriteView {
        uint64_t limit, used; /* bytes of the slice; used by the whole container */
} RewriteView;

/* The data of one FB info entry, in KiB. An index that is not a size keeps its data. */
uint32_t rewrite_fb(const RewriteView *view, uint32_t index, uint32_t data);

/* Ends the card's regions at the limit. regions: n bytes of an RmFbRegions. */
void rewrite_regions(const RewriteView *view, void *regions, uint32_t n);

/* An RmHeap of function INFO: total, free and the largest free block. */
void rewrite_heap(const RewriteView *view, void *heap);

/* An RmAllocMemory: the size of the heap, less one. */
void rewrite_limit(const RewriteView *view, void *memory);
