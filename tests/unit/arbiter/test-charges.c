/* SPDX-License-Identifier: Apache-2.0 */

/* Programs of several kinds beside each other: each is charged what it used, and no tenant has more
 * than its cap. On the model. */

#include "measured.h"

typedef struct Program {
        uint64_t kernel, request, rest; /* ns; request 0: it always wants the card */
        ModelMisreport misreport;
} Program;

static const Program server = {200 * USEC, MSEC, MSEC, MISREPORT_NONE}, busy = {MSEC, 0, 0, MISREPORT_NONE};

static void start(uint32_t of, Program p) {
        ModelProcess *process = model_process(&m, of, p.kernel);

        process->request = p.request;
        process->rest = p.rest;
        process->misreport = p.misreport;
}

static Charges run(const char *what) {
        Charges b;

        model_run(&m, m.now + 5 * SEC);
        b = charges(40 * SEC, NULL);
        printf("# %s:", what);
        for (uint32_t i = 0; i < m.n_tenants; i++)
                printf(" had %.1f, charged %.1f;", b.had[i], b.charged[i]);
        printf("\n");
        return b;
}

/* Underestimated work continues beside the windows of another tenant. During that tenant's pauses
 * the work has the card to itself. */
static void pauses_beside_underestimated_work(void) {
        static const uint64_t kernels[] = {12 * MSEC, 50 * MSEC, 200 * MSEC};

        for (unsigned i = 0; i < 3; i++) {
                Charges b;

                model_init(&m, 7);
                start(tenant(fixed(40)), (Program){.kernel = kernels[i], .misreport = MISREPORT_SHORT});
                start(tenant(fixed(50)), server);
                b = run("40 % with underestimated kernels, 50 % with pauses");
                ASSERT_TRUE(b.had[0] < 41.5);
                ASSERT_NEAR(b.charged[1], b.had[1], 2.5);
                ASSERT_NEAR(b.charged_all, b.had_all, 2);
        }
}

/* A high-priority tenant with pauses: each of its requests arrives during a kernel of another
 * tenant, which keeps the card until its turn ends. */
static void high_priority_with_pauses(void) {
        TenantPolicy first = tenant_policy(&(CardCompute){.policy = COMPUTE_FIXED, .prio_ratio = 99},
                                           &(ComputeRequest){.percent = 60, .high_priority = true});
        Charges b;

        model_init(&m, 5);
        start(tenant(first), server);
        start(tenant(fixed(20)), busy);
        start(tenant(fixed(20)), (Program){50 * USEC, 200 * USEC, 300 * USEC, MISREPORT_NONE});
        b = run("60 % with high priority, 20 % and 20 %");
        ASSERT_TRUE(b.had[1] < 21);
        ASSERT_NEAR(b.charged[0], b.had[0], 2.5);
        ASSERT_NEAR(b.charged_all, b.had_all, 3);
}

/* Each process of a container counts all of the card's time during which the container's other
 * processes had work too. The charge counts that time once. */
static void several_processes_with_pauses(void) {
        for (unsigned n = 2; n <= 16; n *= 2) {
                uint32_t several;
                Charges b;

                model_init(&m, 3);
                several = tenant(fixed(40));
                for (unsigned i = 0; i < n; i++)
                        start(several, (Program){50 * USEC, 200 * USEC, 2 * MSEC, MISREPORT_NONE});
                start(tenant(fixed(50)), (Program){MSEC, 2 * MSEC, MSEC, MISREPORT_NONE});
                b = run("40 %, several processes with pauses");
                ASSERT_NEAR(b.charged[0], b.had[0], 2);
                ASSERT_NEAR(b.charged_all, b.had_all, 2);
        }
}

static double request_of(uint32_t cap, uint64_t request) {
        model_init(&m, 12);
        start(tenant(fixed(cap)), (Program){100 * USEC, request, 15 * MSEC, MISREPORT_NONE});
        start(tenant(fixed(60)), busy);
        return run("requests of more than a window").had[0];
}

/* The last part of a request waits until there are tokens for another window. A tenant loses no
 * more than that wait by a cap of 30 % instead of 40 %. */
static void requests_longer_than_a_window(void) {
        for (uint64_t ms = 5; ms <= 7; ms++)
                ASSERT_TRUE(request_of(30, ms * MSEC) > 0.8 * request_of(40, ms * MSEC));
}

int main(void) {
        return TEST_MAIN(TEST(pauses_beside_underestimated_work), TEST(high_priority_with_pauses),
                         TEST(several_processes_with_pauses), TEST(requests_longer_than_a_window));
}
