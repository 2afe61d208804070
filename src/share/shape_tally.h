/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many grants have each shape: a number of cards, and the units on each of them. */

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
        size_t count; /* of grants; the last one frees the entry */
} ShapeCount;

typedef struct ShapeTally {
        ShapeCount *table;
        uint64_t grants;  /* counted now */
        uint64_t changes; /* how often one came or went */
} ShapeTally;

/* Counts one grant more. The result is for shape_tally_remove(); NULL when there is no memory. */
ShapeCount *shape_tally_add(ShapeTally *t, Shape shape);
void shape_tally_remove(ShapeTally *t, ShapeCount *c); /* c may be NULL */

/* The order of shapes of which the same number is there. For qsort(). */
int shape_tally_compare(const Shape *a, const Shape *b);
