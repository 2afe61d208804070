/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/pause.h"

#define HASTE_NSEC UINT64_C(200000)  /* so short a pause is none */
#define RING_PAUSE UINT64_C(1000000) /* between rings for pauses that come after such a short one */

static SliceRests *rests_of(Account *a, uint32_t card) {
        return &a->gate->cards[card].slice.counters->rests;
}

static bool is_alone(Account *a, uint32_t card) {
        return (atomic_load(&a->gate->cards[card].slice.limits->schedule.flags) & SCHED_F_SOLE) != 0;
}

static bool is_hasty(const Meter *m, uint64_t now) {
        return atomic_load_explicit(&m->haste, memory_order_relaxed) &&
               now < atomic_load_explicit(&m->rang, memory_order_relaxed) + RING_PAUSE;
}

bool pause_begins(Account *a, uint32_t card) {
        Meter *m = &a->meters[card];
        uint64_t now = account_now(), began = is_alone(a, card) ? beat_time(&m->beat, now) : 0;

        atomic_store_explicit(&m->idled, now, memory_order_relaxed);
        atomic_store(&m->rests, began);
        if (began != 0) {
                atomic_store(&rests_of(a, card)->since, began);
                return false;
        }
        if (is_hasty(m, now))
                return false;
        atomic_store_explicit(&m->rang, now, memory_order_relaxed);
        return true;
}

static void note_length(Meter *m, uint64_t now) {
        uint64_t pause = now - atomic_load_explicit(&m->idled, memory_order_relaxed);

        atomic_store_explicit(&m->haste, pause < HASTE_NSEC, memory_order_relaxed);
}

/* Whoever begins ends what the container had of a rest: of several processes whose pauses meet
 * nobody's is counted. */
static bool add_rest(Account *a, uint32_t card, uint64_t now) {
        Meter *m = &a->meters[card];
        SliceRests *r = rests_of(a, card);
        uint64_t mine = atomic_exchange(&m->rests, 0),
                 began = atomic_load(&r->since) != 0 ? atomic_exchange(&r->since, 0) : 0;

        if (mine == 0 || began != mine)
                return false;
        now = beat_time(&m->beat, now);
        (void) atomic_fetch_add(&r->rested, now > began ? now - began : 0);
        (void) atomic_fetch_add(&r->n, 1);
        return true;
}

bool pause_ends(Account *a, uint32_t card, bool open) {
        uint64_t now = account_now();
        bool added = add_rest(a, card, now);

        note_length(&a->meters[card], now);
        return !(added && open && is_alone(a, card));
}
