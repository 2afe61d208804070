/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the processes of a machine share of ONE card's execution: the mapping of nvidiaN, from
 * offset 0. Three kinds of memory:
 *
 *   settings, rows      the server's: which channel groups there are. Others read them.
 *   rings               of a group: the process whose group it is submits, nobody else.
 *   current, buffers    the state of the engines at some moment. `current` names the buffer that holds it; whoever advances it
 *                       writes the new state into a buffer of his own and swaps `current` by compare-and-swap.
 *
 * So there is no lock that a killed or stopped process could keep: what it had not swapped in never
 * was. Times are nanoseconds of CLOCK_MONOTONIC. Nothing that is read here may be believed: every
 * index is masked, every loop bounded. */

#include <stdatomic.h>

#include "sim/engine/state.h"

#define ENGINE_NS_MAX   ((UINT64_C(1) << 56) - 1)
#define ENGINE_PENDING  (UINT64_C(1) << 63)
#define ENGINE_POSITION ((UINT64_C(1) << 48) - 1)

typedef enum EngineKind {
        ENGINE_RUN,        /* so many ns on the compute engine */
        ENGINE_UP,         /* so many ns on the copy engine to the card */
        ENGINE_DOWN,       /* ... from the card */
        ENGINE_AFTER,      /* until an entry of another channel of the group is done: engine_after() */
        ENGINE_NOT_BEFORE, /* until that moment; 0: nothing but its place in the order */
} EngineKind;

typedef struct EngineSettings {
        _Atomic uint64_t slice, change;    /* ns: a group's turn, and what going over to another one costs */
        _Atomic uint64_t up, down, memory; /* bytes per microsecond */
        _Atomic uint64_t groups;           /* rows from here on are nobody's */
} EngineSettings;

typedef struct EngineRow {
        _Atomic uint64_t life; /* number of the group that has this place << 1, and whether it is there */
        _Atomic uint64_t cut;  /* when the last group of this place went */
        _Atomic uint32_t client, group, pid, reserved; /* handles; the pid as the server sees it */
} EngineRow;

typedef struct EnginePlace {
        _Atomic uint64_t stamp; /* when it was given */
        _Atomic uint64_t what;  /* kind << 56, and its argument */
        _Atomic uint64_t done;  /* when it was done, or engine_tag() as long as it is not */
} EnginePlace;

typedef struct EngineRings {
        _Atomic uint64_t channels;                    /* those from here on were never used */
        _Atomic uint64_t tails[ENGINE_CHANNELS];      /* engine_tag() of how many entries were given */
        _Atomic uint64_t priorities[ENGINE_CHANNELS]; /* a kernel of the highest goes first */
        EnginePlace places[ENGINE_CHANNELS][ENGINE_PLACES] __attribute__((aligned(ENGINE_PAGE)));
} EngineRings;

typedef struct EngineBuffer {
        _Atomic uint64_t words[sizeof(EngineState) / 8];
} __attribute__((aligned(ENGINE_PAGE))) EngineBuffer;

typedef struct EngineShared {
        EngineSettings settings __attribute__((aligned(ENGINE_PAGE)));
        EngineRow rows[ENGINE_GROUPS] __attribute__((aligned(ENGINE_PAGE)));
        _Atomic uint64_t current
                __attribute__((aligned(ENGINE_PAGE))); /* engine_current(); 0: nothing has happened yet */
        EngineRings rings[ENGINE_GROUPS] __attribute__((aligned(ENGINE_PAGE)));
        EngineBuffer buffers[ENGINE_GROUPS][2];
} EngineShared;

/* What the server alone writes: [0, ENGINE_SERVERS). */
#define ENGINE_SERVERS offsetof(EngineShared, current)

static inline uint64_t engine_tag(uint64_t generation, uint64_t position) {
        return ENGINE_PENDING | (generation & 0x7FFF) << 48 | (position & ENGINE_POSITION);
}

static inline uint64_t engine_after(unsigned channel, uint64_t position) {
        return (uint64_t) channel << 48 | (position & ENGINE_POSITION);
}

_Static_assert(sizeof(EngineRow) == 32, "EngineRow");
_Static_assert(sizeof(EngineRings) % ENGINE_PAGE == 0, "EngineRings");
