/* SPDX-License-Identifier: Apache-2.0 */

/* 64 processes on one slice, killed at random. A million attempts are the benchmark's (bench-slice). */

#include "slice/crowd.h"
#include "test.h"

static void crowd(void) {
        CrowdSpec spec = {.n_processes = 64, .attempts = 60000, .seed = 20261121, .kill_steps = 3000};
        CrowdResult r = crowd_run(&spec);

        printf("seed %" PRIu64 ": %" PRIu64 " attempts, %" PRIu64 " reserved, %" PRIu64 " refused, %" PRIu64
               " killed at a step, %" PRIu64 " from outside, %" PRIu64 " rounds\n",
               spec.seed, r.attempts, r.reserved, r.refused, r.killed_by_step, r.killed_from_outside,
               r.rounds);
        ASSERT_TRUE(r.reserved > 1000 && r.refused > 1000 && r.killed_by_step > 10);
}

int main(void) {
        return TEST_MAIN(TEST(crowd));
}
