/* SPDX-License-Identifier: Apache-2.0 */

/* Work that waits for a later launch, and tenants that falsely report such work; on the model. */

#include "measured.h"
#include "slice/schedule.h"

/* A program queues `n` kernels of a millisecond, of which none begins before the last one is
 * launched. All of them are launched within `within` ns under any cap. The tenant pays for the
 * windows that this takes, and a tenant beside it keeps its share. begins: the queued work is
 * reported as begun. */
static void queue_behind(uint32_t percent, unsigned n, bool begins, bool beside, uint64_t within) {
        uint64_t from;
        ModelProcess *p;

        model_init(&m, 90 + n);
        p = model_process(&m, tenant(fixed(percent)), MSEC);
        if (beside)
                (void) model_process(&m, tenant(fixed(50)), 100 * USEC);
        model_run(&m, 3 * SEC);
        from = m.now;
        p->begins = begins;
        p->needs = p->n_launched + n;
        while (p->n_launched < p->needs) {
                double other = beside ? share(1, 2 * SEC) : 0;

                if (!beside)
                        model_run(&m, m.now + 10 * MSEC);
                ASSERT_TRUE(!beside || other > 49);
                ASSERT_TRUE(m.now - from <= within);
        }
        printf("# %u kernels of blocked work at %u %%: %.2f s\n", n, percent, (double) (m.now - from) / 1e9);
        ASSERT_INT(m.events, 0);
        p->needs = 0;
        model_run(&m, m.now + 100 * SEC); /* it pays its debt, and then has its share again */
        ASSERT_NEAR(share(0, 10 * SEC), percent, 1);
        ASSERT_TRUE(!beside || share(1, 10 * SEC) > 49);
        ASSERT_TRUE(100 * (double) p->ran / (double) (m.now - SEC) < percent + 0.5);
}

static void blocked_work_is_launched(void) {
        queue_behind(50, 40, false, false, 3 * SEC);
        queue_behind(100, 40, false, false, 4 * SEC);
        queue_behind(20, 40, false, true, 4 * SEC);
        queue_behind(20, 100, false, true, 9 * SEC);
        queue_behind(50, 4, true, false, 6 * SEC);
        queue_behind(20, 4, true, true, 7 * SEC);
}

/* A tenant blocks its own work ten times, each time until a thousand kernels are queued. In the
 * mean it has no more than its share. The other tenant has its share in the end. */
static void false_blocked_work(void) {
        ModelProcess *p;
        Shares s;

        model_init(&m, 99);
        p = model_process(&m, tenant(fixed(20)), 500 * USEC);
        (void) model_process(&m, tenant(fixed(50)), 100 * USEC);
        model_run(&m, 3 * SEC);
        for (unsigned i = 0; i < 10; i++) {
                p->needs = p->n_launched + 1000;
                while (p->n_launched < p->needs)
                        model_run(&m, m.now + 10 * MSEC);
                p->needs = 0;
                model_run(&m, m.now + 2 * SEC);
        }
        printf("# falsely blocked: %.2f of 20, beside it %.2f of 50\n",
               100 * (double) p->ran / (double) (m.now - SEC),
               100 * (double) m.tenants[1].ran / (double) (m.now - SEC));
        ASSERT_TRUE(100 * (double) p->ran / (double) (m.now - SEC) < 20);
        ASSERT_TRUE(100 * (double) m.tenants[1].ran / (double) (m.now - SEC) > 48);
        model_run(&m, m.now + 200 * SEC); /* it pays its debt */
        s = shares(10 * SEC);
        ASSERT_NEAR(s.of[0], 20, 1);
        ASSERT_NEAR(s.of[1], 50, 1);
}

/* A kernel that hangs is reported in time, although a launch waits behind it and gets windows that
 * ignore the backlog. */
static void hung_kernel_with_waiting_launch(void) {
        ModelProcess *p;

        for (unsigned beside = 0; beside < 2; beside++) {
                model_init(&m, 97);
                p = model_process(&m, tenant(fixed(50)), MSEC);
                if (beside)
                        (void) model_process(&m, tenant(fixed(40)), 100 * USEC);
                model_run(&m, 3 * SEC);
                p->begins = true;
                p->needs = UINT64_MAX;
                model_run(&m, m.now + 9500 * MSEC);
                ASSERT_INT(m.events, 0);
                model_run(&m, m.now + 2 * SEC);
                ASSERT_INT(m.events, 1);
                ASSERT_INT(m.overrun_tenant, 0);
        }
}

int main(void) {
        return TEST_MAIN(TEST(blocked_work_is_launched), TEST(false_blocked_work),
                         TEST(hung_kernel_with_waiting_launch));
}
