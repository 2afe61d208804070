/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/loose.h"

#include <time.h>

#include "preload/launch/batch.h"

#define FOLLOW_MOST  UINT64_C(250000000) /* it may wait for something that this thread does after its launch */
#define FOLLOW_PAUSE UINT64_C(1000000000)
#define LOOK_FIRST   UINT64_C(20000)
#define LOOK_MOST    UINT64_C(500000)

enum { EACH = 16 };

typedef enum Followed { OVER, NOT_OVER, NOBODY_KNOWS } Followed;

static void sleep_nsec(uint64_t nsec) {
        struct timespec t = {.tv_sec = 0, .tv_nsec = (long) nsec};

        (void) sys_call(SYS_nanosleep, &t, 0); /* a signal ends it: it looks once more often */
}

static Followed follow(CuHandle stream, uint64_t since) {
        int (*query)(CuHandle) = (int (*)(CuHandle)) real_get(REAL_cuStreamQuery);
        uint64_t pause = LOOK_FIRST;
        int r;

        if (!query)
                return NOBODY_KNOWS;
        for (;;) {
                if (real_is_captured(stream))
                        return NOBODY_KNOWS; /* another thread has begun to: a question would end its capture */
                r = query(stream);
                if (r != CU_ERROR_NOT_READY)
                        break;
                if (account_now() - since >= FOLLOW_MOST)
                        return NOT_OVER;
                sleep_nsec(pause);
                pause = pause * 2 < LOOK_MOST ? pause * 2 : LOOK_MOST;
        }
        return r == CU_SUCCESS ? OVER : NOBODY_KNOWS;
}

/* Of several threads the time counts once. */
static uint64_t by_clock(Meter *m, uint64_t began) {
        uint64_t now = account_now(), over = atomic_load(&m->loose_over), from;

        do
                from = began > over ? began : over;
        while (now > over && !atomic_compare_exchange_weak(&m->loose_over, &over, now));
        return now > from ? now - from : 0;
}

static bool wait_for_it(Account *a, uint32_t card, CuHandle stream, Estimate *e, uint64_t nsec,
                        uint64_t began) {
        Meter *m = &a->meters[card];
        EstimateShare one = {e, 1};
        uint64_t clock;
        Followed f;

        (void) atomic_fetch_add(&m->closed, 1);
        account_want(a, card, began);
        f = follow(stream, began);
        if (f != NOBODY_KNOWS) {
                clock = by_clock(m, began);
                account_charge(a, card, nsec, clock, 1);
                estimate_learn(&one, 1, clock);
        }
        if (f == NOT_OVER)
                atomic_store(&m->excused, account_now() + FOLLOW_PAUSE);
        if (atomic_fetch_sub(&m->closed, 1) == 1)
                account_idle(a, card);
        account_wake(a, card);
        return f != NOBODY_KNOWS;
}

void loose_launched(Account *a, uint32_t card, CuHandle stream, Estimate *e, uint64_t nsec, uint64_t now) {
        Meter *m = &a->meters[card];
        uint64_t until = atomic_load(&m->loose_until), next;
        bool follows = estimate_is_doubtful(e) || atomic_fetch_add(&m->n_loose, 1) % EACH == 0;
        int mode = batches_relax(CU_CAPTURE_RELAXED);

        follows = follows && now >= atomic_load(&m->excused) && wait_for_it(a, card, stream, e, nsec, now);
        (void) batches_relax(mode);
        if (follows)
                return;
        account_charge(a, card, nsec, nsec, 1);
        (void) atomic_fetch_add(&m->in_flight, nsec);
        (void) atomic_fetch_add(&m->loose, nsec);
        do
                next = (until > now ? until : now) + nsec;
        while (!atomic_compare_exchange_weak(&m->loose_until, &until, next));
}

void loose_tend(Account *a, uint32_t card, uint64_t now) {
        Meter *m = &a->meters[card];

        if (atomic_load_explicit(&m->loose, memory_order_relaxed) != 0 && now >= atomic_load(&m->loose_until))
                account_return(a, card, atomic_exchange(&m->loose, 0), 0);
}
