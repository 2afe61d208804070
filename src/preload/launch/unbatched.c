/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/unbatched.h"

#include "preload/launch/cuda_events.h"
#include "preload/launch/tunables.h"

enum { MEASURE_EACH = 16 };

typedef enum Followed { OVER, NOT_OVER, UNKNOWN } Followed;

static Followed wait_until_done(CuHandle stream, uint64_t since) {
        StreamCall *query = (StreamCall *) real_get(REAL_cuStreamQuery);
        uint64_t pause = MIN_FOLLOW_POLL_NS;
        int r;

        if (!query)
                return UNKNOWN;
        for (;;) {
                if (real_is_captured(stream))
                        return UNKNOWN; /* captured since: a query would invalidate it */
                r = query(stream);
                if (r != CU_ERROR_NOT_READY)
                        break;
                if (launch_now() - since >= MAX_FOLLOW_NS)
                        return NOT_OVER;
                launch_sleep(pause);
                pause = pause * 2 < MAX_FOLLOW_POLL_NS ? pause * 2 : MAX_FOLLOW_POLL_NS;
        }
        return r == CU_SUCCESS ? OVER : UNKNOWN;
}

/* The time since `began` that no other thread has counted. */
static uint64_t uncounted_time(ProcessUsage *m, uint64_t began) {
        uint64_t now = launch_now(), over = atomic_load(&m->unbatched_end), from;

        do
                from = began > over ? began : over;
        while (now > over && !atomic_compare_exchange_weak(&m->unbatched_end, &over, now));
        return now > from ? now - from : 0;
}

static bool wait_and_charge(ProcessState *a, uint32_t card, CuHandle stream, Estimate *e, uint64_t nsec,
                            uint64_t began) {
        ProcessUsage *m = &a->usage[card];
        EstimateShare one = {e, 1};
        uint64_t clock;
        Followed f;

        (void) atomic_fetch_add(&m->closed, 1);
        process_report_want(a, card, began);
        f = wait_until_done(stream, began);
        if (f != UNKNOWN) {
                clock = uncounted_time(m, began);
                process_charge(a, card, nsec, clock, 0);
                estimate_learn(&one, 1, clock, true);
        }
        if (f == NOT_OVER)
                atomic_store(&m->unbatched_pause_until, launch_now() + FOLLOW_PAUSE_NS);
        if (atomic_fetch_sub(&m->closed, 1) == 1)
                process_report_idle(a, card);
        process_wake(a, card);
        return f != UNKNOWN;
}

void unbatched_launched(ProcessState *a, uint32_t card, CuHandle stream, Estimate *e, uint64_t nsec,
                        uint64_t now) {
        ProcessUsage *m = &a->usage[card];
        uint64_t until = atomic_load(&m->unbatched_until), next;
        bool follows = estimate_is_uncertain(e) || atomic_fetch_add(&m->n_unbatched, 1) % MEASURE_EACH == 0;
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);

        follows = follows && now >= atomic_load(&m->unbatched_pause_until) &&
                  wait_and_charge(a, card, stream, e, nsec, now);
        (void) launch_relax_capture(mode);
        if (follows)
                return;
        process_charge(a, card, nsec, nsec, 0);
        (void) atomic_fetch_add(&m->in_flight, nsec);
        (void) atomic_fetch_add(&m->unbatched, nsec);
        do
                next = (until > now ? until : now) + nsec;
        while (!atomic_compare_exchange_weak(&m->unbatched_until, &until, next));
}

void unbatched_poll(ProcessState *a, uint32_t card, uint64_t now) {
        ProcessUsage *m = &a->usage[card];

        if (atomic_load_explicit(&m->unbatched, memory_order_relaxed) != 0 &&
            now >= atomic_load(&m->unbatched_until))
                process_return(a, card, atomic_exchange(&m->unbatched, 0), 0);
}
