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

#define GROWTH_LEAST ((GrowthSize){INT32_MIN, INT32_MIN}) /* less than any size */

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

/* Reads the annotation; an empty text has no entry and serial 0. The entries live in the arena.
 * Returns 0; GROWTH_E_MALFORMED with a fault; or -ENOMEM. On an error *ret is empty. */
int growth_read(Str text, Arena *arena, Growth *ret, Fault *fault);

/* Appends the annotation's text, without entries of size 0. */
void growth_write(const Growth *g, Buf *out);

GrowthEntry *growth_find(const Growth *g, Str uid, uint32_t container, uint32_t card);

/* Raises an entry to this size; a missing entry counts as size 0. Returns 0, -ENOMEM, or -E2BIG
 * when there are GROWTH_MAX entries. */
int growth_raise(Growth *g, Arena *arena, const GrowthEntry *entry);

/* Adds an entry of size 0 if it is missing. Returns as growth_raise(). */
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

/* The part of the size that is above the limit. */
static inline GrowthSize growth_excess(GrowthSize a) {
        return growth_larger(a, (GrowthSize){0, 0});
}

/* What the agent knows of a slice; relative to its limit, as entries are. */
typedef struct GrowthUse {
        GrowthSize in_force, wanted;
        GrowthSize held; /* what its processes hold */
        /* from the agent's record on disk: the most that may be held if the annotation was lost */
        GrowthSize permit;
} GrowthUse;

/* The entry as the agent writes it back. Sizes in force and amounts that are held stay charged;
 * what is permitted but no longer wanted is given back. A container can write any number into its
 * counters, so what it holds counts up to the entry and the record's permit. Once a part of the
 * limit is given up, another slice may have it: then only the entry counts. */
GrowthSize growth_keep(GrowthSize entry, const GrowthUse *use);

/* The permit of the agent's record beside this entry: sizes in force, and what is held. What is
 * only wanted is left out, because the scheduler would have to permit it again. If the annotation
 * was lost, also the entry made from the record's permit. */
GrowthSize growth_permit(GrowthSize entry, const GrowthUse *use);

/* Whether the entry permits, and the pod wants, more than is in force. */
bool growth_may_take(GrowthSize entry, const GrowthUse *use);
