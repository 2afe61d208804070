/* SPDX-License-Identifier: Apache-2.0 */

/* Launches that pass behind work without progress, on the virtual clock: programs that need them do
 * not hang, and programs that do not need them keep to their caps. */

#include "card.h"
#include "test.h"
#include "thorough.h"

#include <stdio.h>

static void keep_busy(void *kernel) {
        for (;;)
                card_launch(0, 1, *(const uint64_t *) kernel);
}

/* The percent of the card that a tenant with a cap of 10 % has, beside one of 90 % that always
 * wants the card. */
static double share_of(void (*program)(void *data), void *data, uint64_t ns) {
        static uint64_t others = 500 * USEC;
        const CardCompute fixed = {.policy = COMPUTE_FIXED};
        CardTenant *t, *other;
        uint64_t before[2];

        card_begin(&card_real, 1);
        t = card_tenant(&fixed, &(ComputeRequest){.percent = 10});
        other = card_tenant(&fixed, &(ComputeRequest){.percent = 90});
        (void) card_process(t, program, data);
        (void) card_process(other, keep_busy, &others);
        card_run(fibers_now() + ns / 4);
        before[0] = card_ran(t);
        before[1] = card_ran(other);
        card_run(fibers_now() + ns);
        ASSERT_TRUE(100 * (card_ran(other) - before[1]) >= 88 * ns);
        return 100 * (double) (card_ran(t) - before[0]) / (double) ns;
}

/* A queue of kernels of which each lasts for longer than a launch is held behind stuck work. */
static void queued_kernels_of_seconds(void) {
        static uint64_t kernels[] = {600 * MSEC, SEC, 1500 * MSEC, 2 * SEC};

        for (unsigned i = 0; i < sizeof kernels / sizeof kernels[0]; i += few_or_all(3, 1)) {
                double had = share_of(keep_busy, &kernels[i], few_or_all(40, 100) * SEC);

                printf("# queued kernels of %.1f s: %.1f of 10\n", (double) kernels[i] / 1e9, had);
                ASSERT_TRUE(had < 11);
        }
}

typedef struct Slow {
        uint64_t host, kernel; /* length of the functions and of the kernels beside them */
} Slow;

static void last(void *slow) {
        card_sleep(((const Slow *) slow)->host);
}

/* A kernel behind a host function in one stream, nearly all the time, and kernels in another. */
static void run_slow(void *slow) {
        const Slow *s = slow;
        unsigned stream = card_stream();
        uint64_t next = 0;

        for (unsigned i = 0; i < 200; i++) {
                card_launch(stream, 2, 50 * USEC);
                card_synchronize(stream);
        }
        for (;;) {
                if (fibers_now() >= next) {
                        card_host_func(stream, last, slow);
                        card_launch(stream, 2, 50 * USEC);
                        next = fibers_now() + s->host * 9 / 10;
                }
                card_launch(0, 1, s->kernel);
        }
}

/* Host functions that take long and wait for nothing. */
static void long_host_functions(void) {
        static Slow cases[] = {
                {200 * MSEC, 10 * MSEC}, {200 * MSEC, MSEC}, {2 * SEC, 10 * MSEC}, {1000 * SEC, MSEC}};

        for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i += few_or_all(2, 1)) {
                double had = share_of(run_slow, &cases[i], 20 * SEC);

                printf("# host functions of %.1f s, kernels of %.0f ms: %.1f of 10\n",
                       (double) cases[i].host / 1e9, (double) cases[i].kernel / 1e6, had);
                ASSERT_TRUE(had < 11);
        }
}

static void sleep_for_long(void *unused) {
        (void) unused;
        card_sleep(1000 * SEC);
}

/* A kernel that was short becomes long while a host function keeps the driver's thread, and more
 * batches than the context has wait for their callbacks. */
static void run_longer(void *kernel) {
        const uint64_t *ns = kernel;

        for (unsigned i = 0; i < 400; i++) {
                card_launch(0, 1, 5 * USEC);
                card_synchronize(0);
        }
        card_host_func(card_stream(), sleep_for_long, NULL);
        for (unsigned i = 0; i < 400; i++) {
                card_launch(0, 3, 300 * USEC);
                card_synchronize(0);
        }
        for (;;) {
                card_launch(0, 1, *ns);
                card_synchronize(0);
        }
}

static void longer_beside_a_host_function(void) {
        static uint64_t kernels[] = {MSEC, 10 * MSEC};

        for (unsigned i = 0; i < few_or_all(1, sizeof kernels / sizeof kernels[0]); i++) {
                double had = share_of(run_longer, &kernels[i], 20 * SEC);

                printf("# 5 us become %.0f ms beside a host function: %.1f of 10\n",
                       (double) kernels[i] / 1e6, had);
                ASSERT_TRUE(had < 11);
        }
}

enum { LAUNCHES = 2000 };

typedef struct Locked {
        bool locked;
        unsigned launched;
} Locked;

static void want_lock(void *locked) {
        card_lock(&((Locked *) locked)->locked);
        card_unlock(&((Locked *) locked)->locked);
}

/* A thread launches many kernels while a host function in another stream waits for the lock that it
 * has. */
static void launch_below_a_lock(void *locked) {
        unsigned stream = card_stream();
        Locked *l = locked;

        card_lock(&l->locked);
        card_host_func(stream, want_lock, l);
        card_launch(stream, 2, 50 * USEC);
        for (; l->launched < LAUNCHES; l->launched++)
                card_launch(0, 1, 500 * USEC);
        card_unlock(&l->locked);
        card_synchronize(stream);
        card_sleep(1000 * SEC);
}

static void launches_below_a_lock(void) {
        static Locked l;
        CardTenant *t;

        card_begin(&card_real, 1);
        t = card_tenant(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = 50});
        (void) card_process(t, launch_below_a_lock, &l);
        card_run(fibers_now() + 60 * SEC);
        printf("# %u launches below a lock\n", l.launched);
        ASSERT_INT(l.launched, LAUNCHES);
        ASSERT_FALSE(l.locked);
}

int main(void) {
        return TEST_MAIN(TEST(queued_kernels_of_seconds), TEST(long_host_functions),
                         TEST(longer_beside_a_host_function), TEST(launches_below_a_lock));
}
