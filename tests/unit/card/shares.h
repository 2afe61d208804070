/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One case of the table of shares: tenants that always want the card, under caps, on the simulated
 * card with the real launch hooks and arbiter. */

#include "card.h"

typedef struct SharesCase {
        uint32_t caps[3];                /* percent */
        uint32_t n_tenants, n_processes; /* n_processes: of each tenant */
        uint64_t kernel;                 /* ns */
        uint32_t warm, seconds;          /* not counted; counted */
        const CardCosts *costs;
        bool native; /* without Aliquot: the shares of the driver's own time slices */
} SharesCase;

typedef struct SharesResult {
        double error_10;      /* points, the worst tenant's kernels of all seconds that count */
        double error_charged; /* the same of its charges, with its own switches */
        double sum;           /* percent: what the tenants had, of what their caps allow */
        double all;           /* percent of the card: what they had together */
        double mean[3];       /* percent of the card */
        double steps;         /* of the arbiter, a second */
} SharesResult;

enum { SHARES_CAPS = 5, SHARES_KERNELS = 6 };
extern const uint32_t shares_caps[SHARES_CAPS];
extern const uint64_t shares_kernels[SHARES_KERNELS]; /* ns */

/* cap: of the first tenant; the others divide the rest. The duration depends on the kernels'
 * length. */
void shares_case(uint32_t cap, uint32_t tenants, uint64_t kernel, SharesCase *ret);
SharesResult shares_run(const SharesCase *c, uint64_t seed);
