/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/rewrite.h"

#include <stdbool.h>

#include "preload/inject/bytes.h"

enum {
        HEAP_INFO_SIZE = 56, /* of data.Info in NVOS32: the largest free block */
        REGIONS_AT = offsetof(RmFbRegions, regions),
        /* Size of a region in drivers before 580, with 17 flags instead of 18. The size of the
         * whole structure tells which it is. */
        REGION_OLD = 48,
};

static uint64_t least(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static uint64_t left(const RewriteView *view) {
        return view->used < view->limit ? view->limit - view->used : 0;
}

uint32_t rewrite_fb(const RewriteView *view, uint32_t index, uint32_t data) {
        switch (index) {
        case RM_FB_RAM_SIZE:
        case RM_FB_TOTAL_RAM_SIZE:
        case RM_FB_HEAP_SIZE:
        case RM_FB_MAPPABLE_HEAP_SIZE:
        case RM_FB_USABLE_RAM_SIZE:
        case RM_FB_PROTECTED_SIZE:
                return (uint32_t) least(data, view->limit / 1024);
        case RM_FB_HEAP_FREE:
        case RM_FB_LARGEST_FREE_REGION:
        case RM_FB_PROTECTED_FREE:
                return (uint32_t) least(data, left(view) / 1024);
        default:
                return data;
        }
}

void rewrite_regions(const RewriteView *view, void *regions, uint32_t n) {
        uint8_t *p = regions;
        uint64_t room = view->limit;
        bool old = n == REGIONS_AT + RM_FB_REGION_MAX * REGION_OLD;
        uint32_t count, stride = old ? REGION_OLD : sizeof(RmFbRegion);

        if (n < REGIONS_AT)
                return;
        count = (uint32_t) least(get32(p), (n - REGIONS_AT) / stride);
        for (uint32_t i = 0; i < count; i++) {
                uint8_t *region = p + REGIONS_AT + i * stride;
                uint64_t base = get64(region), last = get64(region + offsetof(RmFbRegion, limit)), size;

                if (room == 0) {
                        bytes_clear(region, stride);
                        if (get32(p) > i)
                                put32(p, i);
                        continue;
                }
                size = last >= base ? least(last - base, UINT64_MAX - 1) + 1 : 0;
                if (size > room)
                        put64(region + offsetof(RmFbRegion, limit), base + room - 1);
                size = least(size, room);
                room -= size;
                put64(region + offsetof(RmFbRegion, reserved),
                      least(get64(region + offsetof(RmFbRegion, reserved)), size));
        }
}

void rewrite_heap(const RewriteView *view, void *heap) {
        uint8_t *p = heap, *total = p + offsetof(RmHeap, total), *free = p + offsetof(RmHeap, free);

        put64(total, least(get64(total), view->limit));
        put64(free, least(get64(free), left(view)));
        put64(p + HEAP_INFO_SIZE, least(get64(p + HEAP_INFO_SIZE), left(view)));
}

void rewrite_limit(const RewriteView *view, void *memory) {
        uint8_t *limit = (uint8_t *) memory + offsetof(RmAllocMemory, limit);

        if (view->limit > 0)
                put64(limit, least(get64(limit), view->limit - 1));
        else
                put64(limit, 0);
}
