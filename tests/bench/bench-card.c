/* SPDX-License-Identifier: Apache-2.0 */

/* Shares under caps, on the simulated card with the launch hooks and the arbiter as they are, on a
 * virtual clock. Each line has the worst of five caps: how many points the kernels' time and the
 * charges are off, and the least sum. "native" is what the same programs have without Aliquot, in
 * percent of the card. Nothing is asserted.
 *
 *     bench-card [real|free [KERNEL [PROCESSES]]]
 *
 * free: a card on which nothing costs anything. KERNEL: only the lines of this length, in us. */

#include <string.h>

#include "../unit/card/shares.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Line { /* the worst of all caps */
        double error, charged, sum, native, steps;
} Line;

static double larger(double a, double b) {
        return a > b ? a : b;
}

static void add(Line *line, SharesCase *c) {
        SharesResult r = shares_run(c, 1);

        line->error = larger(line->error, r.error_10);
        line->charged = larger(line->charged, r.error_charged);
        line->sum = line->sum == 0 || r.sum < line->sum ? r.sum : line->sum;
        line->steps = larger(line->steps, r.steps);
}

static void print_line(const CardCosts *costs, uint64_t kernel, uint32_t tenants, uint32_t processes) {
        Line line = {0};
        SharesCase c;

        for (uint32_t i = 0; i < SHARES_CAPS; i++) {
                shares_case(shares_caps[i], tenants, kernel, &c);
                c.costs = costs;
                c.n_processes = processes;
                add(&line, &c);
        }
        c.native = true;
        line.native = shares_run(&c, 1).all;
        printf("%6.0f us %8u %10u %10.2f %10.2f %7.1f%% %7.1f%% %9.0f\n", (double) kernel / 1e3, tenants,
               processes, line.error, line.charged, line.sum, line.native, line.steps);
        (void) fflush(stdout);
}

int main(int argc, char **argv) {
        const CardCosts *costs = argc > 1 && strcmp(argv[1], "free") == 0 ? &card_free : &card_real;
        uint64_t kernel = argc > 2 ? strtoull(argv[2], NULL, 10) * USEC : 0;
        uint32_t only = argc > 3 ? (uint32_t) strtoul(argv[3], NULL, 10) : 0;

        printf("%9s %8s %10s %10s %10s %8s %8s %9s\n", "kernel", "tenants", "processes", "error", "charged",
               "sum", "native", "steps/s");
        for (uint32_t k = 0; k < SHARES_KERNELS; k++)
                for (uint32_t tenants = 1; tenants <= 3; tenants++)
                        for (uint32_t processes = 1; processes <= 4; processes += 3)
                                if ((kernel == 0 || kernel == shares_kernels[k]) &&
                                    (only == 0 || only == processes))
                                        print_line(costs, shares_kernels[k], tenants, processes);
        return 0;
}
