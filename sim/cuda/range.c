/* SPDX-License-Identifier: Apache-2.0 */
#include <search.h>
#include <string.h>

#include "sim/cuda/api_memory.h"
#include "sim/cuda/memory.h"

/* A tree of ranges that do not overlap. Overlapping ranges compare as equal, so a point is found
 * with a range of one byte. */
static void *ranges;

static int compare(const void *a, const void *b) {
        const Range *x = a, *y = b;

        if (x->start + x->size <= y->start)
                return -1;
        return x->start >= y->start + y->size ? 1 : 0;
}

Range *range_add(const Range *r) {
        Range *copy = malloc(sizeof *copy);
        void *node;

        if (!copy)
                return NULL;
        *copy = *r;
        copy->id = ++state.next_id;
        node = tsearch(copy, &ranges, compare);
        if (node && *(Range **) node == copy)
                return copy;
        free(copy);
        return NULL;
}

void range_remove(Range *r) {
        (void) tdelete(r, &ranges, compare);
        free(r);
}

Range *range_find(CUdeviceptr at) {
        const Range point = {.start = at, .size = 1};
        void *node = tfind(&point, &ranges, compare);

        return node ? *(Range **) node : NULL;
}

static bool is_usable(const Range *r) {
        if (r->kind == RANGE_MAPPED)
                return r->access != CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return r->kind != RANGE_GRAPH || r->block;
}

bool range_covers(CUdeviceptr at, size_t size) {
        while (size > 0) {
                const Range *r = range_find(at);
                size_t rest;

                if (!r || !is_usable(r))
                        return false;
                rest = (size_t) (r->start + r->size - at);
                if (rest >= size)
                        return true;
                at += rest;
                size -= rest;
        }
        return true;
}

/* ---- the end of a context ---- */

typedef struct Victims {
        CUcontext context;
        Range **list;
        size_t n, room;
} Victims;

static void look(const void *node, VISIT visit, void *closure) {
        Victims *v = closure;
        Range *r = *(Range *const *) node;

        if ((visit != postorder && visit != leaf) || r->context != v->context)
                return;
        if (v->n == v->room) {
                size_t room = 2 * v->room + 64;
                Range **list = reallocarray(v->list, room, sizeof *list);

                if (!list)
                        return; /* the next round finds it */
                v->list = list;
                v->room = room;
        }
        v->list[v->n++] = r;
}

void range_end_context(CUcontext c) {
        Victims v = {.context = c};

        do {
                v.n = 0;
                if (ranges)
                        twalk_r(ranges, look, &v);
                for (size_t i = 0; i < v.n; i++)
                        range_free(v.list[i]);
        } while (v.n > 0);
        free(v.list);
}
