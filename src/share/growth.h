/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Growth beyond the limits of pods: ANNOTATION_GROWTH of their node (docs/internals/resize.md).
 *
 *     {"serial":7,"slices":[{"uid":"...","container":0,"card":1,"mem":4,"core":10},
 *                           {"uid":"...","container":0,"card":1,"mem":0,"core":0,"lessMem":2}]}
 *
 * An entry is the charge of a main container on a card, less the part of its limit there. It is
 * what the container may hold above the limit, or what a shrink has given up (lessMem, lessCore). A
 * slice without an entry is charged with its limit. Each card of the node is charged with its
 * entries as long as they stand there. Only the leading scheduler raises an entry, and only the
 * node's agent lowers one. Each writer makes the serial larger, and its patch has the
 * resourceVersion of the object that it read. Pure. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"

enum { GROWTH_E_MALFORMED = 1, GROWTH_MAX = 1024 };

/* Units and percent above the limit; negative: below it. */
typedef struct GrowthSize {
        int32_t mem, core;
} GrowthSize;

#define GROWTH_LEAST ((GrowthSize){INT32_MIN, INT32_MIN}) /* below every size */

typedef struct GrowthEntry {
        Str uid;                  /* of the pod */
        uint32_t container, card; /* index in spec.containers, index of the card */
        GrowthSize size;
} GrowthEntry;

typedef struct Growth {
        uint64_t serial; /* 0: the annotation is absent */
        GrowthEntry *list;
        size_t n;
} Growth;

/* Reads the annotation; an empty text has no entry and the serial 0. The entries live in the
 * arena. 0; GROWTH_E_MALFORMED with a fault; or -ENOMEM. *ret is set in each
 * case. */
int growth_read(Str text, Arena *arena, Growth *ret, Fault *fault);

/* Entries of size 0 are left out. */
void growth_write(const Growth *g, Buf *out);

/* NULL: there is none. */
GrowthEntry *growth_find(const Growth *g, Str uid, uint32_t container, uint32_t card);

/* Raises the entry to this size; a missing one is of size 0. 0, -ENOMEM, or -E2BIG: there are
 * GROWTH_MAX entries. */
int growth_raise(Growth *g, Arena *arena, const GrowthEntry *entry);

/* Makes an entry of size 0 where it is missing, and returns the same. */
int growth_ensure(Growth *g, Arena *arena, Str uid, uint32_t container, uint32_t card);

static inline GrowthSize growth_larger(GrowthSize a, GrowthSize b) {
        return (GrowthSize){a.mem > b.mem ? a.mem : b.mem, a.core > b.core ? a.core : b.core};
}

static inline GrowthSize growth_smaller(GrowthSize a, GrowthSize b) {
        return (GrowthSize){a.mem < b.mem ? a.mem : b.mem, a.core < b.core ? a.core : b.core};
}

static inline bool growth_is_same(GrowthSize a, GrowthSize b) {
        return a.mem == b.mem && a.core == b.core;
}

/* Whether a part of the limit has been given up. */
static inline bool growth_is_below(GrowthSize a) {
        return a.mem < 0 || a.core < 0;
}

/* What is above the limit. */
static inline GrowthSize growth_excess(GrowthSize a) {
        return growth_larger(a, (GrowthSize){0, 0});
}

/* What the agent knows of a slice, relative to the limit as the entry is. */
typedef struct GrowthUse {
        GrowthSize in_force, wanted;
        GrowthSize held;   /* by the container's processes */
        GrowthSize permit; /* of the record: the most that may be held, after the annotation was lost */
} GrowthUse;

/* The entry as the agent writes it: what is in force and what is held stay charged. What is
 * permitted and no longer wanted is given back. Counters have any number, so what is held is
 * charged up to the entry and the record's permit. Once a part of the limit is given up, another
 * slice may have it: then the entry alone says what may be held. */
GrowthSize growth_keep(GrowthSize entry, const GrowthUse *use);

/* The record's permit beside such an entry: without what is wanted only, which the scheduler would
 * have to permit again. Also the entry where the annotation was lost, made of the record's
 * permit. */
GrowthSize growth_permit(GrowthSize entry, const GrowthUse *use);

/* Whether the entry permits more than is in force, and that is wanted. */
bool growth_may_take(GrowthSize entry, const GrowthUse *use);
