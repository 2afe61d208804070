/* SPDX-License-Identifier: Apache-2.0 */

/* Any call of the driver: number and size, the structure, its parameters. The decision must be
 * consistent whatever they are. */

#include <stdlib.h>
#include <string.h>

#include "gpu/rm/fifo.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const uint8_t sizes[] = {32, 48, 16, 56, 184, 28, 20, 40};
        uint8_t *head = part(&data, &size, 8), *outer, *inner;
        uint32_t n_outer = sizes[head[1] % sizeof sizes], n_inner = head[2] % (RM_INNER_MAX + 1);
        RmSliceInfo known = {.sliced = head[3] & 1,
                             .limit = (uint64_t) head[4] << 22,
                             .group_bytes = (uint64_t) head[5] << 16};
        RewriteView view = {.limit = known.limit, .used = known.group_bytes};
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
        (void) rewrite_fb(&view, head[6], (uint32_t) head[7] << 24);
        free(inner);
        free(outer);
        free(head);
        return 0;
}
