/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The execution of ONE card, shared by the processes of a machine: the mapping of nvidiaN, from
 * offset 0. Three kinds of memory:
 *
 *   settings, rows     which channel groups there are: the server writes them, others read them
 *   rings              of a group: only the process that owns the group submits to it
 *   current, buffers   the state of the engines at one time; `current` names its buffer
 *
 * A process that advances the state writes the new one into a buffer of its own and swaps `current`
 * by compare-and-swap. So there is no lock that a killed or stopped process could keep, and a state
 * that was not swapped in has no effect. Times are ns of CLOCK_MONOTONIC. Nothing that is read here
 * is trusted: every index is masked, every loop bounded. */

#include <stdatomic.h>

#include "sim/engine/state.h"

#define ENGINE_NS_MAX   ((UINT64_C(1) << 56) - 1)
#define ENGINE_PENDING  (UINT64_C(1) << 63)
#define ENGINE_POSITION ((UINT64_C(1) << 48) - 1)

typedef enum EngineKind {
        ENGINE_RUN,   /* so many ns on the compute engine */
        ENGINE_UP,    /* so many ns on the copy engine to the card */
        ENGINE_DOWN,  /* ... from the card */
        ENGINE_AFTER, /* until an entry of another channel of the group is done: engine_after() */
        ENGINE_EVENT, /* until its group has a time slice, unless it follows a copy */
} EngineKind;

typedef struct EngineSettings {
        _Atomic uint64_t slice, change;    /* ns: of a group's time slice, and of a switch between groups */
        _Atomic uint64_t up, down, memory; /* bytes per microsecond */
        _Atomic uint64_t groups;           /* rows from here on are unused */
} EngineSettings;

typedef struct EngineRow {
        _Atomic uint64_t life; /* number of the group with this slot << 1, and whether it exists */
        _Atomic uint64_t cut;  /* when the last group of this slot was removed */
        _Atomic uint32_t client, group, pid, reserved; /* handles; the pid in the server's namespace */
} EngineRow;

typedef struct EngineSlot {
        _Atomic uint64_t stamp; /* when it was submitted */
        _Atomic uint64_t what;  /* kind << 56, and its argument */
        _Atomic uint64_t done;  /* when it was done; until then engine_tag() */
} EngineSlot;

typedef struct EngineRings {
        _Atomic uint64_t channels;               /* those from here on were never used */
        _Atomic uint64_t tails[ENGINE_CHANNELS]; /* engine_tag() of the submitted entries */
        EngineSlot slots[ENGINE_CHANNELS][ENGINE_RING_SIZE] __attribute__((aligned(ENGINE_PAGE)));
} EngineRings;

typedef struct EngineBuffer {
        _Atomic uint64_t words[sizeof(EngineState) / 8];
} __attribute__((aligned(ENGINE_PAGE))) EngineBuffer;

typedef struct EngineShared {
        EngineSettings settings __attribute__((aligned(ENGINE_PAGE)));
        EngineRow rows[ENGINE_GROUPS] __attribute__((aligned(ENGINE_PAGE)));
        _Atomic uint64_t current
                __attribute__((aligned(ENGINE_PAGE))); /* engine_current(); 0: not used yet */
        EngineRings rings[ENGINE_GROUPS] __attribute__((aligned(ENGINE_PAGE)));
        EngineBuffer buffers[ENGINE_GROUPS][2];
} EngineShared;

/* Written by the server only: [0, ENGINE_SERVERS). */
#define ENGINE_SERVERS offsetof(EngineShared, current)

static inline uint64_t engine_tag(uint64_t generation, uint64_t position) {
        return ENGINE_PENDING | (generation & 0x7FFF) << 48 | (position & ENGINE_POSITION);
}

static inline uint64_t engine_after(unsigned channel, uint64_t position) {
        return (uint64_t) channel << 48 | (position & ENGINE_POSITION);
}

_Static_assert(sizeof(EngineRow) == 32, "EngineRow");
_Static_assert(sizeof(EngineRings) % ENGINE_PAGE == 0, "EngineRings");
