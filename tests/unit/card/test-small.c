/* SPDX-License-Identifier: Apache-2.0 */

/* Programs with kernels or copies that are short beside their pauses, or that differ in length, on
 * the virtual clock. Such a program is measured now and then only. A light one must not be charged
 * for its pauses, and a heavy one must not pass for a light one. */

#include "card.h"
#include "test.h"

enum { LENGTHS = 3 };

typedef struct Program {
        const char *name;
        uint64_t lengths[LENGTHS]; /* of kernels of one function, by turns; 0: no further one */
        bool copies;               /* blocking copies instead */
        bool sleeps;               /* in the pause; else its thread runs */
        uint64_t pause;            /* after each, when it has ended */
        uint32_t cap;              /* percent */
        double least_work;         /* percent of what it does without a limit; 0: no bound */
        double most;               /* percent of the card; 0: no bound */
} Program;

static const Program programs[] = {
        {"20 us, sleeps 2 ms", {20 * USEC}, .sleeps = true, .pause = 2 * MSEC, .cap = 10, .least_work = 95},
        {"30 us, sleeps 4.5 ms",
         {30 * USEC},
         .sleeps = true,
         .pause = 9 * MSEC / 2,
         .cap = 10,
         .least_work = 95},
        {"copies of 30 us, sleeps 2 ms",
         {30 * USEC},
         .copies = true,
         .sleeps = true,
         .pause = 2 * MSEC,
         .cap = 30,
         .least_work = 95},
        {"100 us, then 50 us of a processor", {100 * USEC}, .pause = 50 * USEC, .cap = 70, .least_work = 90},
        {"100 us and 1.4 ms by turns", {100 * USEC, 1400 * USEC}, .pause = 200 * USEC, .cap = 10, .most = 18},
        {"60, 60 us and 1.2 ms by turns",
         {60 * USEC, 60 * USEC, 1200 * USEC},
         .pause = 200 * USEC,
         .cap = 10,
         .most = 13},
};

static uint64_t rounds;

static void do_one(const Program *p, uint64_t nsec) {
        static const uintptr_t function = 1000;

        if (p->copies) {
                card_copy_and_wait(nsec);
        } else {
                card_launch(0, function, nsec);
                card_synchronize(0);
        }
        if (p->sleeps)
                card_sleep(p->pause);
        else
                card_compute(p->pause);
}

static void run_program(void *userdata) {
        const Program *p = userdata;

        for (;; rounds++)
                for (unsigned i = 0; i < LENGTHS && p->lengths[i] != 0; i++)
                        do_one(p, p->lengths[i]);
}

/* limit: NULL: none. Returns the program's share, percent of the card. */
static double run(const Program *p, const CardCompute *limit, uint64_t *ret_rounds) {
        CardTenant *t;
        uint64_t ran;

        card_begin(&card_real, 1);
        t = card_tenant(limit, &(ComputeRequest){.percent = p->cap, .weight = 1});
        card_process(t, run_program, (void *) p);
        card_run(SEC);
        ran = card_ran(t);
        rounds = 0;
        card_run(5 * SEC);
        *ret_rounds = rounds;
        return 100.0 * (double) (card_ran(t) - ran) / (double) (4 * SEC);
}

static void small_kernels(void) {
        for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
                const Program *p = &programs[i];
                uint64_t n, native;
                double share, work;

                (void) run(p, NULL, &native);
                share = run(p, &(CardCompute){.policy = COMPUTE_FIXED}, &n);
                work = 100.0 * (double) n / (double) native;
                printf("# %s, cap of %u: %.1f %% of the card, %.1f %% of its work\n", p->name, p->cap, share,
                       work);
                if (work < p->least_work)
                        TEST_FAIL_("%s: %.1f %% of its work", p->name, work);
                if (p->most != 0 && share > p->most)
                        TEST_FAIL_("%s: %.1f %% of the card", p->name, share);
        }
}

int main(void) {
        return TEST_MAIN(TEST(small_kernels));
}
