/* SPDX-License-Identifier: Apache-2.0 */

/* Any call of the driver: number and size, the structure, its parameters. The decision must be
 * consistent whatever they are. */

#include <stdlib.h>
#include <string.h>

#include "gpu/rm/fifo.h"
#include "gpu/rm/release.h"
#include "preload/memory/admit.h"
#include "preload/memory/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
        if (!ok)
                abort();
}

/* In a block of exactly the size that may be read. */
static uint8_t *part(const uint8_t **data, size_t *left, size_t n) {
        uint8_t *p = calloc(1, n > 0 ? n : 1);
        size_t take = n < *left ? n : *left;

        if (!p)
                abort();
        memcpy(p, *data, take);
        *data += take;
        *left -= take;
        return p;
}

static bool is_of_size(const RmRequest *request, uint32_t one, uint32_t many) {
        return request->params_size ==
               (request->kind == RM_EXPORT || request->kind == RM_IMPORT ? one : many);
}

/* The parameters are the bytes of the request: any bytes do. */
static void check_scheduling(const RmRequest *request) {
        union {
                uint8_t bytes[sizeof(RmDisableChannels)];
                RmTimeslice timeslice;
                RmPreemptionMode mode;
                RmDisableChannels list;
        } p = {.bytes = {0}};

        require(request->params_size <= sizeof p);
        memcpy(p.bytes, request, sizeof *request);
        if (rm_admit_scheduling(request, &p) != RM_OK)
                return;
        if (request->kind == RM_SET_TIMESLICE)
                require(p.timeslice.usec <= 2048);
        if (request->kind == RM_SET_PREEMPTION)
                require(!(p.mode.flags & 1) || p.mode.compute >= 2);
        if (request->kind == RM_SET_CHANNELS)
                require(p.list.n <= 64);
}

static void check_verdict(const RmRequest *request, const RmSliceInfo *known) {
        RmVerdict v = rm_admit(request, known);

        if (v.action == RM_CHARGE)
                require(known->sliced && v.bytes <= known->limit && !request->overflow &&
                        v.bytes >= request->bytes);
        if (v.action == RM_REFUSE)
                require(v.status != RM_OK);
        if (request->kind == RM_EXPORT || request->kind == RM_EXPORT_MANY)
                require(v.action == (is_of_size(request, 24, 2128) ? RM_TRACK_EXPORT : RM_REFUSE));
        if (request->kind == RM_IMPORT || request->kind == RM_IMPORT_MANY)
                require(v.action == (is_of_size(request, 20, 652) ? RM_MEASURE : RM_REFUSE));
        if (v.action == RM_SCHEDULE)
                check_scheduling(request);
        if (request->kind == RM_DUPLICATE)
                require(v.action == RM_MEASURE);
        if (request->kind == RM_ALLOC_VIDMEM)
                require(v.action == RM_CHARGE || v.action == RM_REFUSE);
        if (request->kind == RM_UNKNOWN)
                require(v.action == RM_REFUSE && v.status == RM_ERR_INVALID_ARGUMENT);
}

static void check_answer(const RmRequest *request, uint8_t *outer, const uint8_t *inner, uint32_t n,
                         const RmSliceInfo *known) {
        RewriteView view = {.limit = known->limit, .used = known->group_bytes};

        rm_set_status(request, outer, RM_ERR_NO_MEMORY);
        require(rm_status(request, outer) == RM_ERR_NO_MEMORY);
        (void) rm_new_handle(request, outer);
        if (request->kind == RM_ALLOC_VIDMEM && !request->overflow)
                require(rm_taken(request, outer, inner, n) > 0 &&
                        rm_taken(request, outer, inner, n) >= request->bytes);
        if (request->kind == RM_QUERY_HEAP)
                rewrite_heap(&view, outer);
        if (request->kind == RM_QUERY_HEAP_LIMIT)
                rewrite_limit(&view, outer);
}

/* ---- by the tables of a release ---- */

/* No more memory than the limit is left in regions of the release's length. */
static void check_regions(const RmRelease *release, const uint8_t **data, size_t *left,
                          const RewriteView *view) {
        uint32_t head = offsetof(RmFbRegions, regions), n = head + RM_FB_REGION_MAX * release->fb_region;
        uint8_t *regions = part(data, left, n);
        uint64_t sum = 0;
        uint32_t count;

        rewrite_regions(view, regions, n);
        memcpy(&count, regions, sizeof count);
        for (uint32_t i = 0; i < count && i < RM_FB_REGION_MAX; i++) {
                uint64_t range[2]; /* base and limit */

                memcpy(range, regions + head + i * release->fb_region, sizeof range);
                if (range[1] >= range[0]) {
                        require(range[1] - range[0] < view->limit);
                        sum += range[1] - range[0] + 1;
                }
        }
        require(sum <= view->limit);
        free(regions);
}

/* Parameters of the release's length have a size; shorter ones may have none, and are charged. */
static void check_memory(const RmRelease *release, const uint8_t **data, size_t *left,
                         const RmSliceInfo *known) {
        uint8_t *params = part(data, left, release->memory_params);
        RmAlloc outer = {.class_ = RM_CLASS_MEMORY_LOCAL};
        RmRequest request;
        uint64_t bytes;

        memcpy(&bytes, params + offsetof(RmMemoryParams, size), sizeof bytes);
        rm_decode(RM_ESC_ALLOC, sizeof outer, &outer, &request);
        rm_decode_inner(&request, params, release->memory_params);
        require(request.kind == RM_ALLOC_VIDMEM && (request.overflow || request.bytes == bytes));
        check_verdict(&request, known);
        free(params);
}

static void check_index(const RewriteView *view, uint8_t index) {
        uint32_t shown = rewrite_fb(view, index, UINT32_MAX);

        require(shown == UINT32_MAX ? !rewrite_fb_needs_version(index)
                                    : (uint64_t) shown << 10 <= view->limit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
#define ROW(...) {__VA_ARGS__},
        static const RmRelease releases[] = {RM_RELEASES(ROW)};
#undef ROW
        static const uint8_t sizes[] = {32, 48, 16, 56, 184, 28, 20, 40};
        uint8_t *head = part(&data, &size, 8), *outer, *inner;
        uint32_t n_outer = sizes[head[1] % sizeof sizes], n_inner = head[2] % (RM_INNER_MAX + 1);
        RmSliceInfo known = {.sliced = head[3] & 1,
                             .limit = (uint64_t) head[4] << 22,
                             .group_bytes = (uint64_t) head[5] << 16};
        RewriteView view = {.limit = known.limit, .used = known.group_bytes};
        const RmRelease *release = &releases[head[7] % (sizeof releases / sizeof *releases)];
        RmRequest request;

        outer = part(&data, &size, n_outer);
        inner = part(&data, &size, n_inner);
        rm_decode(head[0], n_outer, outer, &request);
        rm_decode_inner(&request, inner, n_inner);
        check_verdict(&request, &known);
        if (rm_is_odd(head[0], n_outer)) /* the position of its status is not known */
                require(request.kind == RM_UNKNOWN && !rm_metered(head[0], n_outer));
        else if (request.kind != RM_OTHER)
                check_answer(&request, outer, inner, n_inner, &known);
        rewrite_regions(&view, inner, n_inner);
        check_index(&view, head[6]);
        check_memory(release, &data, &size, &known);
        check_regions(release, &data, &size, &view);
        free(inner);
        free(outer);
        free(head);
        return 0;
}
