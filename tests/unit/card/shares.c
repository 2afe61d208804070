/* SPDX-License-Identifier: Apache-2.0 */
#include "shares.h"

#include <stddef.h>

enum { SECONDS_MAX = 128 };

const uint32_t shares_caps[SHARES_CAPS] = {10, 30, 50, 70, 90};
const uint64_t shares_kernels[SHARES_KERNELS] = {5 * USEC, 50 * USEC, 500 * USEC,
                                                 5 * MSEC, 50 * MSEC, 500 * MSEC};

void shares_case(uint32_t cap, uint32_t tenants, uint64_t kernel, SharesCase *ret) {
        *ret = (SharesCase){.caps = {cap, 100 - cap},
                            .n_tenants = tenants,
                            .n_processes = 1,
                            .kernel = kernel,
                            .warm = 1 + (uint32_t) (20 * kernel / SEC),
                            .seconds = kernel < 50 * USEC ? 3 : 10,
                            .costs = &card_real};
        if (tenants == 3)
                ret->caps[1] = ret->caps[2] = (100 - cap) / 2;
}

static void work(void *argument) {
        const SharesCase *c = argument;

        for (;;)
                card_launch(0, 1, c->kernel);
}

static void judge(const SharesCase *c, uint64_t ran[SECONDS_MAX][3], SharesResult *r) {
        double all = 0, could = 0;

        for (uint32_t t = 0; t < c->n_tenants; t++) {
                double points;

                r->mean[t] = 100 * (double) (ran[c->warm + c->seconds][t] - ran[c->warm][t]) /
                             ((double) SEC * c->seconds);
                points = r->mean[t] - c->caps[t];
                points = points < 0 ? -points : points;
                r->error_10 = points > r->error_10 ? points : r->error_10;
                all += r->mean[t];
                could += c->caps[t];
        }
        r->sum = 100 * all / could;
}

SharesResult shares_run(const SharesCase *c, uint64_t seed) {
        static uint64_t ran[SECONDS_MAX][3];
        CardTenant *tenants[3];
        SharesResult r = {0};
        uint64_t begin;

        card_begin(c->costs, seed);
        begin = fibers_now();
        for (uint32_t t = 0; t < c->n_tenants; t++) {
                tenants[t] = card_tenant(c->native ? NULL : &(CardCompute){.policy = COMPUTE_FIXED},
                                         &(ComputeRequest){.percent = c->caps[t]});
                for (uint32_t p = 0; p < c->n_processes; p++)
                        (void) card_process(tenants[t], work, (void *) c);
        }
        for (uint32_t s = 0; s <= c->warm + c->seconds && s < SECONDS_MAX; s++) {
                card_run(begin + s * SEC);
                for (uint32_t t = 0; t < c->n_tenants; t++)
                        ran[s][t] = card_ran(tenants[t]);
        }
        judge(c, ran, &r);
        r.steps = (double) card_steps() / (c->warm + c->seconds);
        return r;
}
