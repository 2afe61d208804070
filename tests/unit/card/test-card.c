/* SPDX-License-Identifier: Apache-2.0 */

/* Launch hooks, arbiter and card together, on a virtual clock. */

#include "shares.h"
#include "test.h"
#include "thorough.h"

static SharesResult run(uint32_t cap, uint32_t tenants, uint64_t kernel, bool native) {
        SharesCase c;

        shares_case(cap, tenants, kernel, &c);
        c.native = native;
        c.seconds = kernel < MSEC ? 3 : 10;
        return shares_run(&c, 1);
}

/* Over ten seconds the error is at most 1.8 points and one kernel's part. Switches between contexts
 * cost the caps at most 5 %. */
static void keeps_caps(void) {
        for (uint32_t tenants = 1; tenants <= 3; tenants += few_or_all(2, 1))
                for (uint32_t k = 1; k < SHARES_KERNELS - 1; k++) {
                        uint64_t kernel = shares_kernels[k];
                        SharesResult r = run(k % 2 ? 30 : 70, tenants, kernel, false);
                        double kernels = 100 * (double) kernel / (double) (10 * SEC);

                        if (r.error_10 > 1.8 + kernels || r.sum < 95)
                                TEST_FAIL_("%u tenants, kernels of %g us: off by %.2f points, sum %.1f %%",
                                           tenants, (double) kernel / 1e3, r.error_10, r.sum);
                }
}

/* The card by itself: without Aliquot two tenants have half of it each, less the switches. */
static void time_slices_without_aliquot(void) {
        SharesResult r = run(30, 2, 50 * USEC, true);

        ASSERT_TRUE(r.mean[0] > 46 && r.mean[0] < 50);
        ASSERT_TRUE(r.mean[1] > 46 && r.mean[1] < 50);
}

static uint64_t launched;

static void count(void *argument) {
        for (;;) {
                card_launch(0, 1, *(const uint64_t *) argument);
                launched++;
        }
}

static void pipeline(void *argument) {
        unsigned streams[3] = {0, card_stream(), card_stream()};

        for (unsigned i = 0;; i++) {
                card_launch(streams[i % 3], 1 + i % 3, *(const uint64_t *) argument);
                launched++;
        }
}

/* Kernels of three streams share the card, so the spans of their batches overlap. */
static void three_streams(void) {
        static uint64_t kernel = 300 * USEC;
        CardTenant *a, *b;
        uint64_t ran[2];

        card_begin(&card_real, 1);
        a = card_tenant(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = 60});
        b = card_tenant(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = 40});
        (void) card_process(a, pipeline, &kernel);
        (void) card_process(b, count, &kernel);
        card_run(fibers_now() + SEC);
        ran[0] = card_ran(a);
        ran[1] = card_ran(b);
        card_run(fibers_now() + 5 * SEC);
        ran[0] = card_ran(a) - ran[0];
        ran[1] = card_ran(b) - ran[1];
        printf("# 60 %%, three streams: %.2f, beside 40 %%: %.2f\n", (double) ran[0] / (5e7),
               (double) ran[1] / 5e7);
        ASSERT_TRUE(ran[0] > 57 * 5 * SEC / 100 && ran[0] < 61 * 5 * SEC / 100);
        ASSERT_TRUE(ran[1] > 37 * 5 * SEC / 100 && ran[1] < 41 * 5 * SEC / 100);
}

typedef struct Iteration {
        unsigned launches; /* after so many, the program waits for them */
        bool gaps;         /* the program computes between them */
} Iteration;

static void iterate(void *iteration) {
        const Iteration *one = iteration;

        for (;;) {
                for (unsigned i = 0; i < one->launches; i++) {
                        card_launch(0, 1, 5 * USEC);
                        if (one->gaps)
                                card_compute(i % 7 * USEC);
                }
                card_synchronize(0);
        }
}

/* The row says that nothing is in flight while work without a mark runs. That time is
 * no pause: it is charged. */
static void programs_that_synchronize(void) {
        static const Iteration iterations[] = {{10, false}, {100, false}, {1000, false},
                                               {10, true},  {100, true},  {1000, true}};

        for (unsigned i = 0; i < sizeof iterations / sizeof iterations[0]; i += few_or_all(2, 1)) {
                CardTenant *t;
                double had;

                card_begin(&card_real, 1);
                t = card_tenant(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = 50});
                (void) card_process(t, iterate, (void *) &iterations[i]);
                card_run(fibers_now() + SEC);
                had = (double) card_ran(t);
                card_run(fibers_now() + 3 * SEC);
                had = ((double) card_ran(t) - had) / (3e7);
                printf("# 50 %%, waits after %u kernels%s: %.1f\n", iterations[i].launches,
                       iterations[i].gaps ? " with gaps" : "", had);
                ASSERT_TRUE(had > 40 && had < 52);
        }
}

/* Processes of one container take turns on the card. So the batch of a short kernel may last for
 * the time slices of the others, and that time is not taken for the kernel's length. The container
 * is charged for the switches between its processes, which are in no kernel's time. */
static void four_processes(void) {
        static const double sums[] = {80, 85, 87, 90};

        for (uint32_t k = few_or_all(1, 0); k < 4; k += few_or_all(2, 1)) {
                SharesResult r;
                SharesCase c;

                shares_case(50, 2, shares_kernels[k], &c);
                c.n_processes = 4;
                c.seconds = k < 3 ? 3 : 10;
                r = shares_run(&c, 1);
                printf("# four processes, kernels of %g us: sum %.1f %%, charges off by %.2f points\n",
                       (double) c.kernel / 1e3, r.sum, r.error_charged);
                ASSERT_TRUE(r.sum > sums[k] && r.error_charged <= 1.3);
        }
}

/* Of the processes of a container only the last one to drain rings. */
static void wake_ups_of_four_processes(void) {
        for (uint32_t tenants = 2; tenants <= few_or_all(2, 3); tenants++) {
                SharesResult r;
                SharesCase c;

                shares_case(50, tenants, 5 * USEC, &c);
                c.n_processes = 4;
                c.seconds = few_or_all(1, c.seconds);
                r = shares_run(&c, 1);
                printf("# %u tenants with four processes: %.0f wake-ups a second\n", tenants, r.steps);
                ASSERT_TRUE(r.steps <= 1000);
        }
}

/* For a function of its own, so that no length is known from the tests before. */
static void launch_long_kernels(void *function) {
        for (;;)
                card_launch(0, *(const uintptr_t *) function, 500 * MSEC);
}

static void begin_long_kernels(CardTenant **tenants, uint32_t n, uint32_t cap) {
        static uintptr_t function = 100;

        function++;
        card_begin(&card_real, 1);
        for (uint32_t i = 0; i < n; i++) {
                tenants[i] = card_tenant(&(CardCompute){.policy = COMPUTE_FIXED},
                                         &(ComputeRequest){.percent = i == 0 ? cap : 100 - cap});
                for (unsigned p = 0; p < 4; p++)
                        (void) card_process(tenants[i], launch_long_kernels, &function);
        }
}

/* Unmeasured work of four processes that share the card is slow, but not taken for blocked work. So
 * the container has at most two kernels of each process too many at first, and one of each at the
 * end. */
static void long_kernels_of_four_processes(void) {
        static const uint32_t caps[] = {10, 30, 50, 70, 90};
        const double seconds = 40, too_much = 3 * 4 * 0.5;

        for (unsigned i = 0; i < 5; i += few_or_all(2, 1)) {
                CardTenant *t;
                double had;

                begin_long_kernels(&t, 1, caps[i]);
                card_run(fibers_now() + 40 * SEC);
                had = (double) card_ran(t) / 1e9;
                printf("# four processes, kernels of 500 ms, %u %%: %.1f s of %g\n", caps[i], had, seconds);
                ASSERT_TRUE(had <= seconds * caps[i] / 100 + too_much);
        }
}

typedef struct Trial {
        uintptr_t function;
        uint64_t until; /* the kernels are short until then */
} Trial;

static void launch_long_after_short(void *trial) {
        const Trial *t = trial;

        while (fibers_now() < t->until)
                card_launch(0, t->function, 5 * USEC);
        card_synchronize(0);
        card_sleep(20 * MSEC);
        for (;;)
                card_launch(0, t->function, 500 * MSEC);
}

/* The kernels of a function get longer after a pause. Before that is known, a few of each process
 * are launched. */
static void short_kernels_that_become_long(void) {
        static const double most[2][2] = {{6, 22}, {10, 24}}; /* seconds, of 40 */

        for (unsigned i = 0; i < 4; i++) {
                unsigned processes = i % 2 ? 4 : 1, cap = i / 2 ? 50 : 10;
                static Trial trial = {.function = 200};
                CardTenant *t;
                double had;

                trial.function++;
                card_begin(&card_real, 1);
                trial.until = fibers_now() + SEC;
                t = card_tenant(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = cap});
                for (unsigned p = 0; p < processes; p++)
                        (void) card_process(t, launch_long_after_short, &trial);
                card_run(trial.until);
                had = (double) card_ran(t) / 1e9;
                card_run(trial.until + 40 * SEC);
                had = (double) card_ran(t) / 1e9 - had;
                printf("# processes: %u, 5 us and after a pause 500 ms, %u %%: %.1f s of 40\n", processes,
                       cap, had);
                ASSERT_TRUE(had <= most[i % 2][i / 2]);
        }
}

/* The kernels of two such tenants run at the same time. Each pays for half of it. */
static void long_kernels_of_two_tenants(void) {
        for (uint32_t cap = 10; cap <= 50; cap += few_or_all(40, 20)) {
                CardTenant *t[2];
                double had[2];

                begin_long_kernels(t, 2, cap);
                card_run(fibers_now() + 20 * SEC);
                had[0] = (double) card_ran(t[0]) / 1e9;
                had[1] = (double) card_ran(t[1]) / 1e9;
                card_run(fibers_now() + 100 * SEC);
                had[0] = (double) card_ran(t[0]) / 1e9 - had[0];
                had[1] = (double) card_ran(t[1]) / 1e9 - had[1];
                printf("# four processes each, kernels of 500 ms: %.1f of %u, %.1f of %u\n", had[0], cap,
                       had[1], 100 - cap);
                ASSERT_TRUE(had[0] <= cap + 2 && had[1] <= 102 - cap);
                ASSERT_TRUE(had[0] + had[1] >= 85);
        }
}

/* While the arbiter makes no step, each process keeps to its own percentage. */
static void without_arbiter(void) {
        static uint64_t kernel = 200 * USEC;
        CardTenant *t;
        uint64_t ran;

        card_begin(&card_real, 1);
        t = card_tenant(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = 40});
        (void) card_process(t, count, &kernel);
        card_arbiter_stops(fibers_now() + 9 * SEC);
        card_run(fibers_now() + 2 * SEC);
        ran = card_ran(t);
        card_run(fibers_now() + 4 * SEC);
        ran = card_ran(t) - ran;
        ASSERT_TRUE(ran > 37 * SEC * 4 / 100 && ran < 41 * SEC * 4 / 100);
}

/* The other tenant has all of the card after a process is killed. */
static void a_process_is_killed(void) {
        static uint64_t kernel = 500 * USEC;
        CardTenant *a, *b;
        CardProcess *p;
        uint64_t ran;

        card_begin(&card_real, 1);
        a = card_tenant(&(CardCompute){.policy = COMPUTE_PREEMPTIVE}, &(ComputeRequest){.weight = 1});
        b = card_tenant(&(CardCompute){.policy = COMPUTE_PREEMPTIVE}, &(ComputeRequest){.weight = 1});
        p = card_process(a, count, &kernel);
        (void) card_process(b, count, &kernel);
        card_run(fibers_now() + SEC);
        card_kill(p);
        card_run(fibers_now() + SEC);
        ran = card_ran(b);
        card_run(fibers_now() + SEC);
        ASSERT_TRUE(card_ran(b) - ran > 96 * SEC / 100);
}

/* A process that was to ring for its container is killed before it has drained. */
static void processes_are_killed_in_turn(void) {
        static uint64_t kernel = 400 * USEC;
        CardTenant *a, *b;
        uint64_t ran[2];

        card_begin(&card_real, 1);
        a = card_tenant(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = 50});
        b = card_tenant(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = 50});
        (void) card_process(a, count, &kernel);
        (void) card_process(a, count, &kernel);
        (void) card_process(b, count, &kernel);
        card_run(fibers_now() + SEC);
        ran[0] = card_ran(a);
        ran[1] = card_ran(b);
        for (unsigned i = 0; i < 40; i++) {
                CardProcess *p = card_process(a, count, &kernel);

                card_run(fibers_now() + 47 * MSEC + i * 317 * USEC);
                card_kill(p);
        }
        ran[0] = 1000 * (card_ran(a) - ran[0]) / (40 * 47 * MSEC + 780 * 317 * USEC);
        ran[1] = 1000 * (card_ran(b) - ran[1]) / (40 * 47 * MSEC + 780 * 317 * USEC);
        printf("# 50 %%, a third process is killed repeatedly: %.1f, beside 50 %%: %.1f\n",
               (double) ran[0] / 10, (double) ran[1] / 10);
        ASSERT_TRUE(ran[0] >= 130); /* at each end, work that was not reported is charged */
        ASSERT_TRUE(ran[1] >= 460);
}

int main(void) {
        return TEST_MAIN(TEST(time_slices_without_aliquot), TEST(keeps_caps), TEST(three_streams),
                         TEST(programs_that_synchronize), TEST(four_processes),
                         TEST(wake_ups_of_four_processes), TEST(long_kernels_of_four_processes),
                         TEST(long_kernels_of_two_tenants), TEST(short_kernels_that_become_long),
                         TEST(without_arbiter), TEST(a_process_is_killed),
                         TEST(processes_are_killed_in_turn));
}
