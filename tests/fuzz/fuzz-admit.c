/* SPDX-License-Identifier: Apache-2.0 */

/* Any call of the driver: number and size, the structure, its parameters. What is decided must hold
 * together whatever they say. */

#include <stdlib.h>
#include <string.h>

#include "preload/memory/admit.h"
#include "preload/memory/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
        if (!ok)
                abort();
}

/* In exactly as many bytes as it may read. */
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

static bool is_of_size(const RmAsk *ask, uint32_t one, uint32_t many) {
        return ask->params_size == (ask->what == RM_EXPORT || ask->what == RM_IMPORT ? one : many);
}

static void check_verdict(const RmAsk *ask, const RmKnown *known) {
        RmVerdict v = rm_admit(ask, known);

        if (v.action == RM_CHARGE)
                require(known->sliced && v.bytes <= known->limit && !ask->overflow && v.bytes >= ask->bytes);
        if (v.action == RM_REFUSE)
                require(v.status != RM_OK);
        if (ask->what == RM_EXPORT || ask->what == RM_EXPORT_MANY)
                require(v.action == (is_of_size(ask, 24, 2128) ? RM_KEEP : RM_REFUSE));
        if (ask->what == RM_IMPORT || ask->what == RM_IMPORT_MANY)
                require(v.action == (is_of_size(ask, 20, 652) ? RM_MEASURE : RM_REFUSE));
        if (ask->what == RM_DUPLICATE)
                require(v.action == RM_MEASURE);
        if (ask->what == RM_NEW_MEMORY)
                require(v.action == RM_CHARGE || v.action == RM_REFUSE);
        if (ask->what == RM_UNKNOWN)
                require(v.action == RM_REFUSE && v.status == RM_ERR_INVALID_ARGUMENT);
}

static void check_answer(const RmAsk *ask, uint8_t *outer, const uint8_t *inner, uint32_t n,
                         const RmKnown *known) {
        RewriteView view = {.limit = known->limit, .used = known->group_bytes};

        rm_set_status(ask, outer, RM_ERR_NO_MEMORY);
        require(rm_status(ask, outer) == RM_ERR_NO_MEMORY);
        (void) rm_new_handle(ask, outer);
        if (ask->what == RM_NEW_MEMORY && !ask->overflow)
                require(rm_taken(ask, outer, inner, n) > 0 && rm_taken(ask, outer, inner, n) >= ask->bytes);
        if (ask->what == RM_TELL_HEAP)
                rewrite_heap(&view, outer);
        if (ask->what == RM_TELL_LIMIT)
                rewrite_limit(&view, outer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const uint8_t sizes[] = {32, 48, 16, 56, 184, 28, 20, 40};
        uint8_t *head = part(&data, &size, 8), *outer, *inner;
        uint32_t n_outer = sizes[head[1] % sizeof sizes], n_inner = head[2] % (RM_INNER_MAX + 1);
        RmKnown known = {.sliced = head[3] & 1,
                         .limit = (uint64_t) head[4] << 22,
                         .group_bytes = (uint64_t) head[5] << 16};
        RewriteView view = {.limit = known.limit, .used = known.group_bytes};
        RmAsk ask;

        outer = part(&data, &size, n_outer);
        inner = part(&data, &size, n_inner);
        rm_decode(head[0], n_outer, outer, &ask);
        rm_decode_inner(&ask, inner, n_inner);
        check_verdict(&ask, &known);
        if (rm_is_odd(head[0], n_outer)) /* nobody knows where its status lies */
                require(ask.what == RM_UNKNOWN && !rm_metered(head[0], n_outer));
        else if (ask.what != RM_OTHER)
                check_answer(&ask, outer, inner, n_inner, &known);
        rewrite_regions(&view, inner, n_inner);
        (void) rewrite_fb(&view, head[6], (uint32_t) head[7] << 24);
        free(inner);
        free(outer);
        free(head);
        return 0;
}
