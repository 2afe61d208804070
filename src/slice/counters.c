/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/counters.h"

#include <errno.h>

#include "slice/counter_word.h"

/* Tests compile this file with a SLICE_STEP() of their own. It stands between every two accesses to
 * shared memory, gets the value that was read last, and kills the process or lets another one
 * run. */
#ifndef SLICE_STEP
#define SLICE_STEP(seen) ((void) 0)
#endif

enum { TRIES = 1 << 20 };

/* A try fails only because another process's change took effect. Among 64 processes a million tries
 * fail with a probability of (63/64)^1048576, which is zero. */

static inline void relax_cpu(void) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
}

/* Records the operation that the used word w names, before the word stops naming it. False: w is
 * not the used word any more.
 *
 * A slow writer cannot set the note back. It swaps the note from a value that it read while w
 * stood, and while w stands no later operation of this lane can have been noted.
 *
 * An operation of the writer's own lane has ended and needs no note. It is recorded all the same,
 * without a swap. So a note is never older than the last two operations, and cannot be mistaken for
 * one 2^22 operations later. */
static bool note_operation(SliceCounters *c, uint64_t w, uint32_t own) {
        uint32_t lane = slice_used_lane(w), sequence = slice_word_sequence(w);
        _Atomic uint32_t *noted = &c->rows[lane / SLICE_LANES].noted[lane % SLICE_LANES];
        uint32_t old = atomic_load_explicit(noted, memory_order_acquire);

        SLICE_STEP(old);
        if (old == sequence)
                return true;
        if (lane == own) {
                atomic_store_explicit(noted, sequence, memory_order_release);
                SLICE_STEP(0);
                return true;
        }
        if (atomic_load_explicit(&c->used, memory_order_acquire) != w)
                return false;
        SLICE_STEP(1);
        if (!atomic_compare_exchange_strong(noted, &old, sequence) && old != sequence)
                return false;
        SLICE_STEP(2);
        return true;
}

static void raise_peak(SliceCounters *c, uint64_t units) {
        uint64_t peak = atomic_load_explicit(&c->peak, memory_order_relaxed);

        for (unsigned i = 0; i < TRIES && units > peak; i++)
                if (atomic_compare_exchange_weak_explicit(&c->peak, &peak, units, memory_order_relaxed,
                                                          memory_order_relaxed))
                        return;
}

static int swap_used(SliceCounters *c, uint32_t lane, uint32_t sequence, int64_t units, uint64_t limit) {
        for (unsigned i = 0; i < TRIES; i++) {
                uint64_t w = atomic_load_explicit(&c->used, memory_order_acquire);
                uint64_t sum = slice_used_units(w) + (uint64_t) units;

                SLICE_STEP(w);
                if (units > 0 && sum > limit)
                        return -ENOMEM;
                if (note_operation(c, w, lane) &&
                    atomic_compare_exchange_strong(&c->used, &w,
                                                   slice_used_word((uint32_t) sum, lane, sequence))) {
                        SLICE_STEP(0);
                        if (units > 0 && limit != SLICE_NO_LIMIT)
                                raise_peak(c, (uint32_t) sum);
                        return 0;
                }
                relax_cpu();
        }
        return -ENOMEM;
}

/* A refused operation leaves its sequence to the next one. So no sequence is used again before 2^22
 * other operations of the lane have stood in the used word. */
int slice_change(SliceCounters *c, uint32_t lane, int64_t units, uint64_t limit) {
        SliceLane *l = &c->rows[lane / SLICE_LANES].lanes[lane % SLICE_LANES];
        uint64_t held = atomic_load_explicit(&l->held, memory_order_relaxed);
        uint32_t sequence = slice_sequence_after(slice_word_sequence(held));
        int r;

        SLICE_STEP(held);
        atomic_store_explicit(&l->operation, slice_word((uint64_t) units, sequence), memory_order_release);
        SLICE_STEP(0);
        r = swap_used(c, lane, sequence, units, limit);
        if (r == 0) {
                atomic_store_explicit(
                        &l->held, slice_word((uint64_t) slice_word_units(held) + (uint64_t) units, sequence),
                        memory_order_release);
                SLICE_STEP(0);
        }
        atomic_store_explicit(&l->operation, slice_word(0, sequence), memory_order_release);
        SLICE_STEP(1);
        return r;
}

/* The used word is read before the note, because an operation enters the note before it leaves the
 * used word. */
static bool went_through(SliceCounters *c, uint32_t lane, uint32_t sequence) {
        uint64_t w = atomic_load_explicit(&c->used, memory_order_acquire);
        uint32_t noted;

        SLICE_STEP(w);
        if (slice_used_lane(w) == lane && slice_word_sequence(w) == sequence)
                return true;
        noted = atomic_load_explicit(&c->rows[lane / SLICE_LANES].noted[lane % SLICE_LANES],
                                     memory_order_acquire);
        SLICE_STEP(noted);
        return noted == sequence;
}

static void recover_lane(SliceCounters *c, uint32_t lane) {
        SliceLane *l = &c->rows[lane / SLICE_LANES].lanes[lane % SLICE_LANES];
        uint64_t operation = atomic_load_explicit(&l->operation, memory_order_acquire);
        uint64_t held = atomic_load_explicit(&l->held, memory_order_acquire);
        uint32_t sequence = slice_word_sequence(operation);

        SLICE_STEP(operation ^ held);
        if (slice_word_units(operation) == 0)
                return;
        if (slice_word_sequence(held) != sequence && went_through(c, lane, sequence)) {
                uint64_t units = (uint64_t) slice_word_units(held) + (uint64_t) slice_word_units(operation);

                atomic_store_explicit(&l->held, slice_word(units, sequence), memory_order_release);
                SLICE_STEP(0);
        }
        atomic_store_explicit(&l->operation, slice_word(0, sequence), memory_order_release);
        SLICE_STEP(1);
}

/* A dead process does not want the card any more. `launched` stays: it counts on over all
 * owners. */
static void clear_work(SliceWork *w) {
        atomic_store_explicit(&w->wants, 0, memory_order_relaxed);
        atomic_store_explicit(&w->busy, 0, memory_order_relaxed);
        atomic_store_explicit(&w->in_flight, 0, memory_order_relaxed);
        atomic_store_explicit(&w->drained, 0, memory_order_relaxed);
}

void slice_complete(SliceCounters *c, uint32_t row) {
        clear_work(&c->rows[row].work);
        for (uint32_t i = 0; i < SLICE_LANES; i++)
                recover_lane(c, row * SLICE_LANES + i);
}

/* Releases all lanes at once: a single lane may hold more than the row. If it were released alone,
 * other processes could take the excess meanwhile. Afterwards the lanes add up to zero, and the
 * row's next owner continues from there. */
void slice_recover(SliceCounters *c, uint32_t row) {
        int64_t held;

        slice_complete(c, row);
        held = slice_row_held(&c->rows[row]);
        if (held != 0)
                (void) slice_change(c, row * SLICE_LANES, -held,
                                    SLICE_NO_LIMIT); /* cannot fail: there is no limit */
}

int64_t slice_row_held(const SliceRow *row) {
        uint64_t sum = 0;

        for (unsigned i = 0; i < SLICE_LANES; i++)
                sum += (uint64_t) slice_word_units(
                        atomic_load_explicit(&row->lanes[i].held, memory_order_relaxed));
        return slice_word_units(slice_word(sum, 0));
}

bool slice_row_at_rest(const SliceRow *row) {
        for (unsigned i = 0; i < SLICE_LANES; i++)
                if (slice_word_units(atomic_load_explicit(&row->lanes[i].operation, memory_order_relaxed)) !=
                    0)
                        return false;
        return slice_row_held(row) == 0;
}
