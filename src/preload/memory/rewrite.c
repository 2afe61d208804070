/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/rewrite.h"

#include "preload/inject/bytes.h"

enum {
        HEAP_INFO_SIZE = 56, /* offset of data.Info.size in NVOS32: the largest free block */
        REGIONS_AT = offsetof(RmFbRegions, regions),
        /* Size of a region in drivers before 580, with 17 flags instead of 18. The size of the
         * whole structure shows which it is. */
        REGION_OLD = 48,
        /* up to this index of FB info, the meaning is the same in each release that has it */
        INDEX_SAME = 0x3B,
        /* index of the free bytes in NV2080_CTRL_CMD_FB_STATS_GET_PARAMS of 595, in words */
        STATS_FREE = 6,
        UGPUS = 2,
};

typedef enum FbKind { FB_OTHER, FB_TOTAL, FB_FREE } FbKind;

/* Indexes above INDEX_SAME change their meaning within a branch, so these entries are for exactly
 * these versions. Read in a third party's tables of NVIDIA's headers, by names: HEAP_RECLAIMABLE is
 * free memory, and PARTITION_MASK_2 is no size. */
static const struct {
        char version[12];
        uint32_t index;
        FbKind kind;
} moved[] = {
        {"595.99.02", 0x3C, FB_FREE},
        {"610.57.04", 0x3C, FB_OTHER},
        {"615.71.09", 0x44, FB_FREE},
};

static uint64_t least_of(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static uint64_t bytes_left(const RewriteView *view) {
        return view->used < view->limit ? view->limit - view->used : 0;
}

bool rewrite_fb_needs_version(uint32_t index) {
        return index > INDEX_SAME;
}

static bool is_same(const char *a, const char *b) {
        while (*a != '\0' && *a == *b) {
                a++;
                b++;
        }
        return *a == *b;
}

static FbKind moved_kind(const char *version, uint32_t index) {
        for (size_t i = 0; version && i < sizeof moved / sizeof *moved; i++)
                if (moved[i].index == index && is_same(moved[i].version, version))
                        return moved[i].kind;
        return FB_FREE;
}

static FbKind kind_of(const RewriteView *view, uint32_t index) {
        switch (index) {
        case RM_FB_RAM_SIZE:
        case RM_FB_TOTAL_RAM_SIZE:
        case RM_FB_HEAP_SIZE:
        case RM_FB_MAPPABLE_HEAP_SIZE:
        case RM_FB_USABLE_RAM_SIZE:
        case RM_FB_PROTECTED_SIZE:
                return FB_TOTAL;
        case RM_FB_HEAP_FREE:
        case RM_FB_LARGEST_FREE_REGION:
        case RM_FB_PROTECTED_FREE:
                return FB_FREE;
        default:
                return index > INDEX_SAME ? moved_kind(view->version, index) : FB_OTHER;
        }
}

uint32_t rewrite_fb(const RewriteView *view, uint32_t index, uint32_t data) {
        switch (kind_of(view, index)) {
        case FB_TOTAL:
                return (uint32_t) least_of(data, view->limit / 1024);
        case FB_FREE:
                return (uint32_t) least_of(data, bytes_left(view) / 1024);
        case FB_OTHER:
        default:
                return data;
        }
}

uint64_t rewrite_ugpu(const RewriteView *view, uint32_t at, uint64_t bytes) {
        switch (at * sizeof bytes) {
        case offsetof(RmUgpuMemory, total):
                return least_of(bytes, view->limit);
        case offsetof(RmUgpuMemory, free):
                return least_of(bytes, bytes_left(view));
        default:
                return least_of(bytes,
                                (at * sizeof bytes < offsetof(RmUgpuMemory, ugpu_free) ? view->limit
                                                                                       : bytes_left(view)) /
                                        UGPUS);
        }
}

uint64_t rewrite_stats(const RewriteView *view, uint32_t at, uint64_t bytes) {
        if (at == 0)
                return bytes;
        if (at == STATS_FREE)
                return least_of(bytes, bytes_left(view));
        return least_of(bytes, at < STATS_FREE ? view->limit : view->used);
}

void rewrite_regions(const RewriteView *view, void *regions, uint32_t n) {
        uint8_t *p = regions;
        uint64_t room = view->limit;
        bool old = n == REGIONS_AT + RM_FB_REGION_MAX * REGION_OLD;
        uint32_t count, stride = old ? REGION_OLD : sizeof(RmFbRegion);

        if (n < REGIONS_AT)
                return;
        count = (uint32_t) least_of(get32(p), (n - REGIONS_AT) / stride);
        for (uint32_t i = 0; i < count; i++) {
                uint8_t *region = p + REGIONS_AT + i * stride;
                uint64_t base = get64(region), last = get64(region + offsetof(RmFbRegion, limit)), size;

                if (room == 0) {
                        bytes_clear(region, stride);
                        if (get32(p) > i)
                                put32(p, i);
                        continue;
                }
                size = last >= base ? least_of(last - base, UINT64_MAX - 1) + 1 : 0;
                if (size > room)
                        put64(region + offsetof(RmFbRegion, limit), base + room - 1);
                size = least_of(size, room);
                room -= size;
                put64(region + offsetof(RmFbRegion, reserved),
                      least_of(get64(region + offsetof(RmFbRegion, reserved)), size));
        }
}

void rewrite_heap(const RewriteView *view, void *heap) {
        uint8_t *p = heap, *total = p + offsetof(RmHeap, total), *free = p + offsetof(RmHeap, free);

        put64(total, least_of(get64(total), view->limit));
        put64(free, least_of(get64(free), bytes_left(view)));
        put64(p + HEAP_INFO_SIZE, least_of(get64(p + HEAP_INFO_SIZE), bytes_left(view)));
}

void rewrite_limit(const RewriteView *view, void *memory) {
        uint8_t *limit = (uint8_t *) memory + offsetof(RmAllocMemory, limit);

        if (view->limit > 0)
                put64(limit, least_of(get64(limit), view->limit - 1));
        else
                put64(limit, 0);
}
