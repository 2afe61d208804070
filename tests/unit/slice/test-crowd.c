/* SPDX-License-Identifier: Apache-2.0 */

/* 64 processes on one slice, killed at random. `make bench` runs a million attempts:
 *     test-slice-crowd [ATTEMPTS [SEED]] */

#include "crowd.h"
#include "test.h"

int main(int argc, char **argv) {
        CrowdSpec spec = {.n_processes = 64, .attempts = 60000, .seed = 20261121, .kill_steps = 3000};
        CrowdResult r;

        if (argc > 1)
                spec.attempts = strtoull(argv[1], NULL, 10);
        if (argc > 2)
                spec.seed = strtoull(argv[2], NULL, 10);
        printf("seed %" PRIu64 "\n", spec.seed);
        (void) fflush(stdout); /* before any fork */
        r = crowd_run(&spec);
        printf("%" PRIu64 " attempts by 64 processes: %" PRIu64 " reserved, %" PRIu64 " refused; %" PRIu64
               " killed at a step, %" PRIu64 " from outside; %" PRIu64
               " times taken stock of; never one unit over, none left\n",
               r.attempts, r.reserved, r.refused, r.killed_by_step, r.killed_from_outside, r.rounds);
        ASSERT_TRUE(r.reserved > 1000 && r.refused > 1000 && r.killed_by_step > 10);
        return 0;
}
