/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdlib.h>

#include "base/cleanup.h"

enum { SECONDS_MAX = 400 };

/* Seconds at the start that are not counted, because no tenant has a debt yet. */
static uint32_t warm_up(const TableCase *c) {
        return 2 + (uint32_t) (20 * c->kernel / SEC);
}

const uint32_t table_caps[5] = {10, 30, 50, 70, 90};
const uint64_t table_kernels[6] = {5 * USEC, 50 * USEC, 500 * USEC, 5 * MSEC, 50 * MSEC, 500 * MSEC};

void table_case(uint32_t cap, uint32_t tenants, TableCase *ret) {
        *ret = (TableCase){.caps = {cap, 100 - cap}, .n_tenants = tenants, .n_processes = 1, .seconds = 42};
        if (tenants == 3)
                ret->caps[1] = ret->caps[2] = (100 - cap) / 2;
}

double table_bound(const TableCase *c, unsigned seconds) {
        return 1 + 100 * (double) c->kernel / ((double) SEC * seconds);
}

static double off(const TableCase *c, uint32_t tenant, uint64_t ns, unsigned seconds) {
        double points = 100 * (double) ns / ((double) SEC * seconds) - c->caps[tenant];

        return points < 0 ? -points : points;
}

static void worst(double *into, double value) {
        if (value > *into)
                *into = value;
}

static void judge(const TableCase *c, uint64_t ran[SECONDS_MAX][3], TableResult *r) {
        uint32_t begin = warm_up(c);
        double all = 0, could = 0;

        for (uint32_t t = 0; t < c->n_tenants; t++) {
                for (uint32_t s = begin; s < c->seconds; s++)
                        worst(&r->error_1, off(c, t, ran[s + 1][t] - ran[s][t], 1));
                for (uint32_t s = begin; s + 10 <= c->seconds; s++)
                        worst(&r->error_10, off(c, t, ran[s + 10][t] - ran[s][t], 10));
                worst(&r->mean, off(c, t, ran[c->seconds][t] - ran[begin][t], c->seconds - begin));
                all += (double) (ran[c->seconds][t] - ran[begin][t]) / (double) SEC;
                could += c->caps[t] / 100.0 * (c->seconds - begin);
        }
        r->sum = 100 * all / could;
}

TableResult table_run(const TableCase *c, uint64_t seed) {
        static uint64_t ran[SECONDS_MAX][3];
        Model *m = malloc(sizeof *m);
        TableResult r = {0};

        if (!m)
                abort();
        model_init(m, seed);
        m->per_process = c->per_process;
        m->late = c->late;
        for (uint32_t t = 0; t < c->n_tenants; t++) {
                TenantPolicy policy =
                        tenant_policy(&(CardCompute){.policy = c->native ? COMPUTE_NATIVE : COMPUTE_FIXED},
                                      &(ComputeRequest){.percent = c->caps[t]});
                uint32_t tenant = model_tenant(m, &policy);

                for (uint32_t p = 0; p < c->n_processes; p++)
                        (void) model_process(m, tenant, c->kernel);
        }
        for (uint32_t s = 0; s <= c->seconds; s++) {
                model_run(m, SEC + s * SEC);
                for (uint32_t t = 0; t < c->n_tenants; t++)
                        ran[s][t] = m->tenants[t].ran;
        }
        judge(c, ran, &r);
        r.steps = m->steps;
        free(m);
        return r;
}
