/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many grants have each shape: a number of cards, and units on each. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

typedef struct Shape {
        uint32_t cards, mem;
} Shape;

typedef struct ShapeCount {
        UT_hash_handle hh;
        Shape shape;
        size_t count; /* number of grants; the entry is freed with the last one */
} ShapeCount;

typedef struct ShapeTally {
        ShapeCount *table;
        uint64_t grants;  /* number of grants now */
        uint64_t changes; /* number of calls that added or removed one */
} ShapeTally;

/* Counts one more grant. Returns the entry, for shape_tally_remove(); NULL when out of memory. */
ShapeCount *shape_tally_add(ShapeTally *t, Shape shape);
void shape_tally_remove(ShapeTally *t, ShapeCount *c); /* c may be NULL */

/* An order of shapes, for those with equal counts. For qsort(). */
int shape_tally_compare(const Shape *a, const Shape *b);
