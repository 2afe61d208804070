/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One case of the table of shares: tenants under caps that always want the card, on the model. */

#include "model.h"

typedef struct TableCase {
        uint32_t caps[3];                /* percent */
        uint32_t n_tenants, n_processes; /* n_processes: of each tenant */
        uint64_t kernel;                 /* ns */
        uint32_t seconds;
        bool per_process;
        uint64_t late; /* ns, see Model */
        bool native;   /* no tenant is gated: the shares of the driver's own time slicing */
} TableCase;

typedef struct TableResult {
        double error_1, error_10; /* points: the largest of any second, and of any ten seconds */
        double mean;              /* points: the largest over all the time */
        double sum;               /* percent: what the tenants had, of what their caps allow */
        uint64_t steps;
} TableResult;

extern const uint32_t table_caps[5];
extern const uint64_t table_kernels[6]; /* ns */

/* cap: of the first tenant; the others divide the rest. */
void table_case(uint32_t cap, uint32_t tenants, TableCase *ret);
TableResult table_run(const TableCase *c, uint64_t seed);

/* The error that is allowed, in points: 1, plus one kernel as a part of so many seconds. */
double table_bound(const TableCase *c, unsigned seconds);
