/* SPDX-License-Identifier: Apache-2.0 */

/* The table of shares, with its bounds. */

#include "table.h"
#include "test.h"

static void shares(uint32_t tenants, uint32_t processes) {
        for (size_t k = 0; k < 6; k++)
                for (size_t c = 0; c < 5; c++) {
                        TableCase one;
                        TableResult r;

                        table_case(table_caps[c], tenants, &one);
                        one.kernel = table_kernels[k];
                        one.n_processes = processes;
                        r = table_run(&one, 1 + k * 8 + c);
                        printf("%u tenants %u procs cap %2u kernel %8.3f ms: 1 s %6.2f (%6.2f) 10 s %5.2f (%5.2f) mean %5.2f sum %6.2f steps/s %.0f%s\n", tenants, processes,
                               one.caps[0], (double) one.kernel / 1e6, r.error_1, table_bound(&one, 1), r.error_10,
                               table_bound(&one, 10), r.mean, r.sum, (double) r.steps / one.seconds, r.error_1 > table_bound(&one,1) || r.error_10 > table_bound(&one,10)||r.sum<97?" BAD":"");
                }
}

int main(void) {
        shares(1, 1);
        shares(2, 1);
        shares(3, 1);
        shares(1, 4);
        shares(2, 4);
        shares(3, 4);
        return 0;
}
