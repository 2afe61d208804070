/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/slice-internal.h"

#include <errno.h>
#include <time.h>

#include "base/sys.h"
#include "slice/counter_word.h"
#include "slice/counters.h"

/* Part of the preloaded library: raw system calls only. A compiler must not make calls of memcpy()
 * or memset(): old systems lack their symbol versions. tests/unit/slice/symbols.sh checks what the
 * objects import. */

enum {
        LANE_TURNS = 64, /* turns with sched_yield(): the other thread is about to finish */
        /* turns of a millisecond: the other thread was stopped, or has a lower priority */
        LANE_WAITS = 10000,
};

/* ---- the limit ---- */

bool slice_read_limit(SliceUser *s, uint64_t *ret) {
        for (unsigned i = 0; i < SLICE_LIMIT_TRIES; i++) {
                uint64_t before = atomic_load_explicit(&s->limits->generation, memory_order_acquire);
                uint64_t limit = __atomic_load_n(&s->limits->limit, __ATOMIC_RELAXED);

                atomic_thread_fence(memory_order_acquire);
                *ret = limit;
                if (before % 2 == 0 &&
                    before == atomic_load_explicit(&s->limits->generation, memory_order_relaxed))
                        return true;
        }
        return false;
}

/* ---- reserving ---- */

static void pause_turn(unsigned turn) {
        struct timespec millisecond = {0, 1000000};

        if (turn < LANE_TURNS)
                (void) sys_call(SYS_sched_yield);
        else
                (void) sys_call(SYS_nanosleep, &millisecond, 0); /* a signal may end it early */
}

/* A lane is a try-lock: a signal handler that interrupts a thread takes another lane. Returns
 * SLICE_LANES if none becomes free, because the threads that have them were stopped or left by
 * longjmp(). */
static uint32_t take_lane(SliceUser *s) {
        for (unsigned turn = 0; turn < LANE_TURNS + LANE_WAITS; turn++) {
                for (uint32_t i = 0; i < SLICE_LANES; i++)
                        if (atomic_load_explicit(&s->busy[i], memory_order_relaxed) == 0 &&
                            atomic_exchange_explicit(&s->busy[i], 1, memory_order_acquire) == 0)
                                return i;
                pause_turn(turn);
        }
        return SLICE_LANES;
}

static int change(SliceUser *s, int64_t units, uint64_t limit) {
        uint32_t row = atomic_load_explicit(&s->row, memory_order_relaxed);
        uint32_t lane = row == SLICE_NO_ROW ? SLICE_LANES : take_lane(s);
        int r;

        if (lane == SLICE_LANES)
                return -ENOMEM;
        r = slice_change(s->counters, row * SLICE_LANES + lane, units, limit);
        atomic_store_explicit(&s->busy[lane], 0, memory_order_release);
        return r;
}

static uint64_t units_of(uint64_t bytes) {
        return bytes / SLICE_UNIT + (bytes % SLICE_UNIT != 0);
}

int slice_try(SliceUser *s, uint64_t bytes) {
        uint64_t units = units_of(bytes), limit = slice_limit(s) / SLICE_UNIT;
        int r = -ENOMEM;

        if (limit > SLICE_MAX_UNITS)
                limit = SLICE_MAX_UNITS;
        if (units == 0)
                return 0;
        if (units <= limit) {
                r = change(s, (int64_t) units, limit);
                if (r < 0) {
                        (void) slice_refresh(s);
                        r = change(s, (int64_t) units, limit);
                }
        }
        return r;
}

int slice_reserve(SliceUser *s, uint64_t bytes) {
        int r = slice_try(s, bytes);

        if (r < 0)
                atomic_fetch_add_explicit(&s->counters->refused, 1, memory_order_relaxed);
        return r;
}

void slice_release(SliceUser *s, uint64_t bytes) {
        uint64_t units = units_of(bytes);

        if (units > 0 && units <= SLICE_MAX_UNITS) /* no more can have been reserved */
                (void) change(s, -(int64_t) units, SLICE_NO_LIMIT);
}

int slice_move(SliceUser *from, SliceUser *to, uint64_t bytes) {
        uint64_t units = units_of(bytes);
        int r = 0;

        if (units + slice_used(from) / SLICE_UNIT > SLICE_MAX_UNITS)
                return -ENOMEM;
        if (units > 0)
                r = change(to, (int64_t) units, SLICE_NO_LIMIT);
        if (r == 0 && units > 0)
                (void) change(from, -(int64_t) units,
                              /* on failure they are counted twice until the process ends */
                              SLICE_NO_LIMIT);
        return r;
}

uint64_t slice_limit(SliceUser *s) {
        uint64_t limit, last = atomic_load_explicit(&s->last_limit, memory_order_relaxed);

        if (!slice_read_limit(s, &limit))
                return last;
        if (limit != last)
                atomic_store_explicit(&s->last_limit, limit, memory_order_relaxed);
        return limit;
}

uint64_t slice_used(const SliceUser *s) {
        uint64_t used = atomic_load_explicit(&s->counters->used, memory_order_relaxed);

        return (uint64_t) slice_used_units(used) * SLICE_UNIT;
}
