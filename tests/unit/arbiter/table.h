/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One line of the table of shares: tenants that always want the card, under caps, on the model. */

#include "model.h"

typedef struct TableCase {
        uint32_t caps[3];                /* percent */
        uint32_t n_tenants, n_processes; /* of each */
        uint64_t kernel;                 /* ns */
        uint32_t seconds;
        bool per_process;
        uint64_t late; /* ns, as in the model */
        bool native;   /* nobody is gated: what the driver's own time slicing gives */
} TableCase;

typedef struct TableResult {
        double error_1, error_10; /* points, the worst of any second and of any ten */
        double mean;              /* points, over all the time */
        double sum;               /* of what they had, as part of what they could have had */
        uint64_t steps;
} TableResult;

extern const uint32_t table_caps[5];
extern const uint64_t table_kernels[6]; /* ns */

void table_case(uint32_t cap, uint32_t tenants, TableCase *ret); /* the first cap; others have the rest */
TableResult table_run(const TableCase *c, uint64_t seed);

/* Points: one, and a kernel's part of so many seconds. */
double table_bound(const TableCase *c, unsigned seconds);
