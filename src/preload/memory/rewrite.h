/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The driver's answers about memory, made those of the slice: the total is the limit, free is what
 * the container has left of it, and neither is ever more than the driver itself said. Pure: bytes
 * in, bytes out. */

#include "gpu/rm/rm.h"

typedef struct RewriteView {
        uint64_t limit, used; /* bytes of the slice; used by the whole container */
} RewriteView;

/* One entry of an FB info list; data is KiB. What is no size stays as it is. */
uint32_t rewrite_fb(const RewriteView *view, uint32_t index, uint32_t data);

/* Regions of the card, of which n bytes are there: they end where the limit does. */
void rewrite_regions(const RewriteView *view, void *regions, uint32_t n);

/* An RmHeap of function INFO: total, free, and the largest free block. An RmAllocMemory: the heap's
 * size, less one. */
void rewrite_heap(const RewriteView *view, void *heap);
void rewrite_limit(const RewriteView *view, void *memory);
