/* SPDX-License-Identifier: Apache-2.0 */
#include "share/shape_tally.h"

#include <assert.h>
#include <stdlib.h>

ShapeCount *shape_tally_add(ShapeTally *t, Shape shape) {
        ShapeCount *c;

        HASH_FIND(hh, t->table, &shape, sizeof shape, c);
        if (!c) {
                c = calloc(1, sizeof *c);
                if (!c)
                        return NULL;
                c->shape = shape;
                HASH_ADD(hh, t->table, shape, sizeof c->shape, c);
                if (!hash_added(c, hh)) {
                        free(c);
                        return NULL;
                }
        }
        c->count++;
        t->grants++;
        t->changes++;
        return c;
}

void shape_tally_remove(ShapeTally *t, ShapeCount *c) {
        if (!c)
                return;
        assert(c->count > 0);
        t->grants--;
        t->changes++;
        if (--c->count > 0)
                return;
        HASH_DELETE(hh, t->table, c);
        free(c);
}

int shape_tally_compare(const Shape *a, const Shape *b) {
        if (a->cards != b->cards)
                return a->cards < b->cards ? -1 : 1;
        return (a->mem > b->mem) - (a->mem < b->mem);
}
