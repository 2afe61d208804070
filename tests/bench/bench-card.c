/* SPDX-License-Identifier: Apache-2.0 */

/* Shares under caps, on the simulated card with the launch hooks and the arbiter as they are, on a
 * virtual clock. Nothing is asserted.
 *
 *     bench-card [real|free [KERNEL [PROCESSES]]]
 *
 * free: a card on which nothing costs anything. KERNEL: only the lines of this length, in us. */

#include <string.h>

#include "../unit/card/shares.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
        const CardCosts *costs = argc > 1 && strcmp(argv[1], "free") == 0 ? &card_free : &card_real;
        uint64_t kernel = argc > 2 ? strtoull(argv[2], NULL, 10) * USEC : 0;
        uint32_t only = argc > 3 ? (uint32_t) strtoul(argv[3], NULL, 10) : 0;

        printf("%9s %8s %10s %10s %8s %9s\n", "kernel", "tenants", "processes", "10 s", "sum", "steps/s");
        for (uint32_t k = 0; k < SHARES_KERNELS; k++)
                for (uint32_t tenants = 1; tenants <= 3; tenants++)
                        for (uint32_t processes = 1; processes <= 4; processes += 3) {
                                double error = 0, sum = 1000, steps = 0;

                                if ((kernel != 0 && kernel != shares_kernels[k]) ||
                                    (only != 0 && only != processes))
                                        continue;
                                for (uint32_t cap = 0; cap < SHARES_CAPS; cap++) {
                                        SharesResult r;
                                        SharesCase c;

                                        shares_case(shares_caps[cap], tenants, shares_kernels[k], &c);
                                        c.costs = costs;
                                        c.n_processes = processes;
                                        r = shares_run(&c, 1);
                                        error = r.error_10 > error ? r.error_10 : error;
                                        sum = r.sum < sum ? r.sum : sum;
                                        steps = r.steps > steps ? r.steps : steps;
                                }
                                printf("%6.0f us %8u %10u %10.2f %7.1f%% %9.0f\n",
                                       (double) shares_kernels[k] / 1e3, tenants, processes, error, sum,
                                       steps);
                                (void) fflush(stdout);
                        }
        return 0;
}
