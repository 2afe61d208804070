/* SPDX-License-Identifier: Apache-2.0 */
#include "turnstile/pause.h"

#define HASTE_NSEC UINT64_C(200000)  /* so short a pause is none */
#define RING_PAUSE UINT64_C(1000000) /* between rings for pauses that come after such a short one */

enum {
        /* Meter.pause: what the arbiter knows of the present one */
        PAUSE_TOLD = 0,
        PAUSE_SILENT,  /* nothing */
        PAUSE_WRITTEN, /* what SliceRests says */
};

static SliceRests *rests_of(Account *a, uint32_t card) {
        return &a->gate->cards[card].slice.counters->rests;
}

static bool is_alone(Account *a, uint32_t card) {
        return (atomic_load(&a->gate->cards[card].slice.limits->turn.flags) & TURN_ALONE) != 0;
}

static bool is_hasty(const Meter *m, uint64_t now) {
        return atomic_load_explicit(&m->haste, memory_order_relaxed) &&
               now < atomic_load_explicit(&m->rang, memory_order_relaxed) + RING_PAUSE;
}

bool pause_begins(Account *a, uint32_t card) {
        Meter *m = &a->meters[card];
        uint64_t now = account_now();

        atomic_store_explicit(&m->idled, now, memory_order_relaxed);
        if (is_alone(a, card)) {
                now = beat_time(&m->beat, now);
                atomic_store_explicit(&m->rests, now, memory_order_relaxed);
                atomic_store(&rests_of(a, card)->since, now);
                atomic_store(&m->pause, (uint32_t) PAUSE_WRITTEN);
                return false;
        }
        if (is_hasty(m, now)) {
                atomic_store(&m->pause, (uint32_t) PAUSE_SILENT);
                return false;
        }
        atomic_store_explicit(&m->rang, now, memory_order_relaxed);
        return true;
}

static void note_length(Meter *m, uint64_t now) {
        uint64_t pause = now - atomic_load_explicit(&m->idled, memory_order_relaxed);

        atomic_store_explicit(&m->haste, pause < HASTE_NSEC, memory_order_relaxed);
}

/* Whoever begins ends what the container had of a rest: of several processes whose pauses meet nobody's is counted. */
static bool add_rest(Account *a, uint32_t card, uint64_t now, bool written) {
        Meter *m = &a->meters[card];
        SliceRests *r = rests_of(a, card);
        uint64_t began = atomic_load(&r->since) != 0 ? atomic_exchange(&r->since, 0) : 0;

        if (!written || began == 0 || began != atomic_load_explicit(&m->rests, memory_order_relaxed))
                return false;
        now = beat_time(&m->beat, now);
        (void) atomic_fetch_add(&r->rested, now > began ? now - began : 0);
        (void) atomic_fetch_add(&r->n, 1);
        return true;
}

bool pause_ends(Account *a, uint32_t card, bool open) {
        Meter *m = &a->meters[card];
        uint64_t now = account_now();
        uint32_t how = atomic_exchange(&m->pause, (uint32_t) PAUSE_TOLD);
        bool added = add_rest(a, card, now, how == PAUSE_WRITTEN);

        note_length(m, now);
        if (!open || how == PAUSE_TOLD)
                return true;
        return how == PAUSE_WRITTEN && !(added && is_alone(a, card));
}
