/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/pause.h"

#include "preload/launch/tunables.h"

static SliceRests *rests_of(ProcessState *a, uint32_t card) {
        return &a->gate->cards[card].slice.counters->rests;
}

static bool is_sole(ProcessState *a, uint32_t card) {
        return (atomic_load(&a->gate->cards[card].slice.limits->schedule.flags) & SCHED_F_SOLE) != 0;
}

static bool is_hasty(const ProcessUsage *m, uint64_t now) {
        return atomic_load_explicit(&m->haste, memory_order_relaxed) &&
               now < atomic_load_explicit(&m->rang_at, memory_order_relaxed) + DOORBELL_PAUSE_NS;
}

bool pause_begins(ProcessState *a, uint32_t card) {
        ProcessUsage *m = &a->usage[card];
        uint64_t now = launch_now(), began = is_sole(a, card) ? heartbeat_time(&m->heartbeat, now) : 0;

        atomic_store_explicit(&m->idle_at, now, memory_order_relaxed);
        atomic_store(&m->rest_since, began);
        if (began != 0) {
                atomic_store(&rests_of(a, card)->since, began);
                return false;
        }
        if (is_hasty(m, now))
                return false;
        atomic_store_explicit(&m->rang_at, now, memory_order_relaxed);
        return true;
}

static void note_length(ProcessUsage *m, uint64_t now) {
        uint64_t pause = now - atomic_load_explicit(&m->idle_at, memory_order_relaxed);

        atomic_store_explicit(&m->haste, pause < SHORT_PAUSE_NS, memory_order_relaxed);
}

/* Whoever begins ends what the container had of a rest: of several processes whose pauses meet
 * nobody's is counted. */
static bool add_rest(ProcessState *a, uint32_t card, uint64_t now) {
        ProcessUsage *m = &a->usage[card];
        SliceRests *r = rests_of(a, card);
        uint64_t mine = atomic_exchange(&m->rest_since, 0),
                 began = atomic_load(&r->since) != 0 ? atomic_exchange(&r->since, 0) : 0;

        if (mine == 0 || began != mine)
                return false;
        now = heartbeat_time(&m->heartbeat, now);
        (void) atomic_fetch_add(&r->rested, now > began ? now - began : 0);
        (void) atomic_fetch_add(&r->n, 1);
        return true;
}

bool pause_ends(ProcessState *a, uint32_t card, bool open) {
        uint64_t now = launch_now();
        bool added = add_rest(a, card, now);

        note_length(&a->usage[card], now);
        return !(added && open && is_sole(a, card));
}
