/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the processes of a machine share of ONE card's execution: the mapping of nvidiaN, from offset 0. Three kinds of memory:
 *
 *   settings, rows      the server's: which channel groups there are. Others read them.
 *   rings               of a group: the process whose group it is submits, nobody else.
 *   current, buffers    the state of the engines at some moment. `current` names the buffer that holds it; whoever advances it
 *                       writes the new state into a buffer of his own and swaps `current` by compare-and-swap.
 *
 * So there is no lock that a killed or stopped process could keep: what it had not swapped in never was. Times are nanoseconds of
 * CLOCK_MONOTONIC. Nothing that is read here may be believed: every index is masked, every loop bounded. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        ENGINE_GROUPS = 256,
        ENGINE_CHANNELS = 32,  /* of a group */
        ENGINE_PLACES = 1024,  /* of a channel: work that is given and not done */
        ENGINE_LOG = 128,      /* completions that one advance can have */
        ENGINE_NONE = 0xFFFF,  /* no group, no channel */
        ENGINE_PAGE = 4096,
};

#define ENGINE_NS_MAX      ((UINT64_C(1) << 56) - 1)
#define ENGINE_PENDING     (UINT64_C(1) << 63)
#define ENGINE_POSITION    ((UINT64_C(1) << 48) - 1)
#define ENGINE_HELD_NSEC   UINT64_C(10000000000) /* no group has an engine for longer at a time, whatever is written */
#define ENGINE_WINDOW_NSEC UINT64_C(166666667) /* over which utilisation is measured */

typedef enum EngineKind {
        ENGINE_RUN,        /* so many ns on the compute engine */
        ENGINE_UP,         /* so many ns on the copy engine to the card */
        ENGINE_DOWN,       /* ... from the card */
        ENGINE_AFTER,      /* until an entry of another channel of the group is done: engine_after() */
        ENGINE_NOT_BEFORE, /* until that moment; 0: nothing but its place in the order */
} EngineKind;

typedef struct EngineSettings {
        _Atomic uint64_t slice, change; /* ns: a group's turn, and what going over to another one costs */
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
        _Atomic uint64_t channels;              /* those from here on were never used */
        _Atomic uint64_t tails[ENGINE_CHANNELS]; /* engine_tag() of how many entries were given */
        _Atomic uint64_t priorities[ENGINE_CHANNELS]; /* a kernel of the highest goes first */
        EnginePlace places[ENGINE_CHANNELS][ENGINE_PLACES] __attribute__((aligned(ENGINE_PAGE)));
} EngineRings;

/* --- the state: words only, so that it can be copied while somebody writes ---------------------------------------- */

typedef struct EngineMeter {
        uint64_t all;                    /* ns, ever */
        uint64_t window, inside, before; /* number of the window that runs; busy ns in it, and in the one before */
} EngineMeter;

typedef struct EngineHead {
        uint64_t position; /* of the entry that is next, or under way */
        uint64_t left;     /* ns that it still has to run, once it has begun; 0: it has not */
} EngineHead;

typedef struct EngineGroup {
        uint64_t generation; /* as in its row; 0: nobody */
        uint64_t channels;   /* those from here on were never used */
        uint64_t channel;    /* whose kernel is under way; ENGINE_NONE */
        uint64_t last;       /* channel that had a kernel last */
        EngineMeter ran;
        EngineHead heads[ENGINE_CHANNELS];
} EngineGroup;

typedef struct EngineDone {
        uint64_t group, channel, position, tag, time;
} EngineDone;

typedef struct EngineCopier {
        uint64_t group, channel, end;    /* group ENGINE_NONE: it is idle */
        uint64_t last_group, last_channel;
} EngineCopier;

typedef struct EngineState {
        uint64_t now;
        uint64_t groups;    /* those from here on are nobody */
        uint64_t owner;     /* group that has the compute engine, or had it last */
        uint64_t resting;   /* 1: the compute engine had nothing to do */
        uint64_t slice_end; /* the owner's turn */
        uint64_t ready;     /* from when on it can compute: a change costs time */
        uint64_t n_log;
        EngineMeter busy;
        EngineCopier copiers[2]; /* up, down */
        EngineDone log[ENGINE_LOG]; /* what was done on the way to `now` from the state before */
        EngineGroup group[ENGINE_GROUPS];
} EngineState;

typedef struct EngineBuffer {
        _Atomic uint64_t words[sizeof(EngineState) / 8];
} __attribute__((aligned(ENGINE_PAGE))) EngineBuffer;

typedef struct EngineShared {
        EngineSettings settings __attribute__((aligned(ENGINE_PAGE)));
        EngineRow rows[ENGINE_GROUPS] __attribute__((aligned(ENGINE_PAGE)));
        _Atomic uint64_t current __attribute__((aligned(ENGINE_PAGE))); /* engine_current(); 0: nothing has happened yet */
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
_Static_assert(sizeof(EngineState) % 8 == 0, "EngineState");
