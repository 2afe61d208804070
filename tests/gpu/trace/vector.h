/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Golden vectors: calls of real programs with their parameters before and after, which
 * tests/unit/preload/memory/test-golden.c decodes again. Addresses of the program become 0x1000,
 * and a card's UUID zeros; process lists are left out. One of each kind is kept, by number, size,
 * class or control, and status; of memory also by size. */

#include <stdbool.h>
#include <stdio.h>

#include "line.h"

typedef struct Vectors {
        FILE *out;
        uint64_t seen[1024]; /* kinds that were written, as hashes */
        size_t n;
} Vectors;

/* Writes the call if the gate decodes it and it is the first of its kind. 0, or -1: it cannot be
 * written. */
int vector_add(Vectors *v, const TraceEvent *e);

/* Masks in place, as vector_add() does before it writes. */
void vector_mask(TraceEvent *e);

/* A number that the gate decides about, in an unknown size: it would pass uncounted. */
bool vector_is_unknown(const TraceEvent *e);

/* What the gate takes a call for, in a word; "": of no concern to it, "unknown": see
 * vector_is_unknown(). */
const char *vector_what(const TraceEvent *e);
