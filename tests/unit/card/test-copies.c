/* SPDX-License-Identifier: Apache-2.0 */

/* Copies to the card under a limit, on the virtual clock. Their rate is the percentage of their
 * rate without Aliquot. No kernel waits for a copy that is held. */

#include "card.h"
#include "test.h"
#include "thorough.h"

static uint64_t copied;

static void one_by_one(void *ns) {
        for (;;) {
                card_copy(0, true, *(const uint64_t *) ns);
                card_synchronize(0);
                copied++;
        }
}

static void blocking(void *ns) {
        for (;;) {
                card_copy_and_wait(*(const uint64_t *) ns);
                copied++;
        }
}

static void without_waiting(void *ns) {
        for (;;) {
                card_copy(0, true, *(const uint64_t *) ns);
                copied++;
        }
}

/* The percent of three seconds in which the program copied. percent 0: without Aliquot. */
static double share(void (*program)(void *ns), uint64_t ns, uint32_t percent) {
        static uint64_t length;
        uint64_t before;
        CardTenant *t;

        card_begin(&card_real, 1);
        t = card_tenant(percent > 0 ? &(CardCompute){.policy = COMPUTE_FIXED} : NULL,
                        &(ComputeRequest){.percent = percent});
        length = ns;
        (void) card_process(t, program, &length);
        card_run(fibers_now() + SEC);
        before = copied;
        card_run(fibers_now() + 3 * SEC);
        return 100 * (double) ((copied - before) * ns) / (double) (3 * SEC);
}

static void check(void (*program)(void *ns), uint64_t ns) {
        static const uint32_t caps[] = {10, 30, 50, 90};
        double alone = share(program, ns, 0), had;

        for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i += few_or_all(2, 1)) {
                had = share(program, ns, caps[i]);
                printf("# copies of %g ms at %u %%: %.1f %% of the time, %.1f %% without a limit\n",
                       (double) ns / 1e6, caps[i], had, alone);
                if (had < (caps[i] - 2) * alone / 100 || had > caps[i] + 1)
                        TEST_FAIL_("copies of %g ms at %u %%: %.2f %%", (double) ns / 1e6, caps[i], had);
        }
}

static void copies_have_their_percentage(void) {
        check(one_by_one, 3 * MSEC);
        check(one_by_one, 300 * USEC);
}

static void blocking_copies(void) {
        check(blocking, 30 * MSEC);
        check(blocking, 3 * MSEC);
        check(blocking, 300 * USEC);
        check(blocking, 10 * USEC);
}

static void copies_in_a_queue(void) {
        check(without_waiting, 3 * MSEC);
        check(without_waiting, 300 * USEC);
}

/* The kernel is in flight all the time, and could be waiting for each of the copies. */
static void beside_a_kernel(void *ns) {
        card_launch(card_stream(), 1, 100 * SEC);
        one_by_one(ns);
}

static void no_kernel_waits_for_a_held_copy(void) {
        double alone = share(beside_a_kernel, MSEC, 0), limited = share(beside_a_kernel, MSEC, 10);

        ASSERT_TRUE(alone > 80 && limited > 0.9 * alone);
}

int main(void) {
        return TEST_MAIN(TEST(copies_have_their_percentage), TEST(blocking_copies), TEST(copies_in_a_queue),
                         TEST(no_kernel_waits_for_a_held_copy));
}
