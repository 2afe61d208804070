/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Golden vectors: calls of real programs with their parameters before and after, to be decoded
 * again by tests/unit/preload/memory/test-golden.c. Addresses of the program are made 0x1000, a
 * card's UUID is made zeros; process lists are left out. One of each kind is kept: of number, size,
 * class or control, and status; of memory also of each size. */

#include <stdbool.h>
#include <stdio.h>

#include "line.h"

typedef struct Vectors {
        FILE *out;
        uint64_t seen[1024]; /* of kinds, by a number made of them */
        size_t n;
} Vectors;

/* Writes it when it is one that the gate decodes, and the first of its kind. 0, or -1 when it
 * cannot be written. */
int vector_add(Vectors *v, const TraceEvent *e);

/* Masks in place: what vector_add() does before it writes. */
void vector_mask(TraceEvent *e);

/* One of the numbers that the gate decides about, in a size that it does not know: it would pass
 * unseen. */
bool vector_is_unknown(const TraceEvent *e);

/* What the gate takes a call for, in a word; "" for what does not matter to it, "unknown" for
 * vector_is_unknown(). */
const char *vector_what(const TraceEvent *e);
