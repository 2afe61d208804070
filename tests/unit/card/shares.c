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

typedef struct Sums { /* at the end of each second, of each tenant */
        uint64_t ran[SECONDS_MAX][3], charged[SECONDS_MAX][3];
} Sums;

/* Percent of the card's time in the seconds that count. */
static double mean_of(const SharesCase *c, const uint64_t sums[SECONDS_MAX][3], uint32_t tenant) {
        return 100 * (double) (sums[c->warm + c->seconds][tenant] - sums[c->warm][tenant]) /
               ((double) SEC * c->seconds);
}

static double larger_error(double error, double mean, uint32_t cap) {
        double points = mean > cap ? mean - cap : cap - mean;

        return points > error ? points : error;
}

static void judge(const SharesCase *c, const Sums *s, SharesResult *r) {
        double all = 0, could = 0;

        for (uint32_t t = 0; t < c->n_tenants; t++) {
                r->mean[t] = mean_of(c, s->ran, t);
                r->error_10 = larger_error(r->error_10, r->mean[t], c->caps[t]);
                r->error_charged = larger_error(r->error_charged, mean_of(c, s->charged, t), c->caps[t]);
                all += r->mean[t];
                could += c->caps[t];
        }
        r->sum = 100 * all / could;
        r->all = all;
}

SharesResult shares_run(const SharesCase *c, uint64_t seed) {
        static Sums sums;
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
                for (uint32_t t = 0; t < c->n_tenants; t++) {
                        sums.ran[s][t] = card_ran(tenants[t]);
                        sums.charged[s][t] = card_charged(tenants[t]);
                }
        }
        judge(c, &sums, &r);
        r.steps = (double) card_steps() / (c->warm + c->seconds);
        return r;
}
