/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/process_utilization.h"

#include <string.h>

#include "test.h"

#define WALL   UINT64_C(1800000000000000) /* us */
#define SECOND UINT64_C(1000000000)       /* ns */

static ProcessUtilization m;
static NvmlUse samples[8];
static uint64_t span;

/* A query at that second; the samples are the driver's answer. */
static unsigned ask(unsigned second, unsigned n) {
        return process_utilization_update(&m, samples, n, second * USEC_PER_SEC, WALL + second * USEC_PER_SEC,
                                          &span);
}

static NvmlUse sample(unsigned pid, unsigned second, unsigned sm) {
        return (NvmlUse){.pid = pid, .time = WALL + second * USEC_PER_SEC, .sm = sm};
}

static void begin(void) {
        m = (ProcessUtilization){0};
        samples[0] = sample(1, 99, 50);
        ASSERT_INT(ask(100, 1), 0); /* for a time without an earlier query */
        ASSERT_INT(span, 0);
        ASSERT_INT(m.since, WALL + 99 * USEC_PER_SEC);
}

static void one_second_after_the_other(void) {
        begin();
        samples[0] = sample(7, 101, 30);
        samples[1] = sample(3, 101, 100);
        ASSERT_INT(ask(101, 2), 2);
        ASSERT_INT(span, SECOND);
        ASSERT_INT(samples[0].pid, 3);
        ASSERT_INT(samples[0].sm, 100);
        ASSERT_INT(samples[1].pid, 7);
        ASSERT_INT(m.since, WALL + 101 * USEC_PER_SEC);
        samples[0] = sample(7, 103, 1);
        ASSERT_INT(ask(103, 1), 1);
        ASSERT_INT(span, 2 * SECOND);
}

/* Only the newest sample of a process counts. Old samples, invalid percentages and entries without
 * a process do not count. */
static void what_does_not_count(void) {
        begin();
        samples[0] = sample(7, 100, 99);
        samples[1] = sample(0, 101, 50);
        samples[2] = sample(7, 101, 30);
        samples[3] = sample(8, 99, 50);
        samples[4] = sample(9, 101, 101);
        samples[5] = sample(10, 101, 0);
        samples[6] = sample(11, 101, UINT32_MAX);
        samples[7] = (NvmlUse){0};
        ASSERT_INT(ask(101, 8), 1);
        ASSERT_INT(samples[0].pid, 7);
        ASSERT_INT(samples[0].sm, 30);
}

/* Otherwise a second of work after an hour of rest would count as almost nothing. */
static void what_was_idle_is_over(void) {
        begin();
        ASSERT_INT(ask(101, 0), 0);
        ASSERT_INT(span, SECOND);
        ASSERT_INT(m.since, WALL + 101 * USEC_PER_SEC);
}

static void a_driver_with_another_clock(void) {
        begin();
        /* the driver's clock was set back, although newer samples were requested */
        samples[0] = (NvmlUse){.pid = 7, .time = 5, .sm = 30};
        ASSERT_INT(ask(101, 1), 0);
        ASSERT_INT(m.since, 5);
        ASSERT_INT(ask(102, 0), 0);
        ASSERT_INT(m.since, 5); /* our clock's time would mean nothing to it */
        samples[0] = (NvmlUse){.pid = 7, .time = 6, .sm = 30};
        ASSERT_INT(ask(103, 1), 1);
        ASSERT_INT(span, SECOND);
}

static void after_a_long_silence(void) {
        begin();
        samples[0] = sample(7, 161, 30);
        ASSERT_INT(ask(161, 1), 0);
        ASSERT_INT(span, 0);
        samples[0] = sample(7, 162, 30);
        ASSERT_INT(ask(162, 1), 1);
        ASSERT_INT(span, SECOND);
}

int main(void) {
        return TEST_MAIN(TEST(one_second_after_the_other), TEST(what_does_not_count),
                         TEST(what_was_idle_is_over), TEST(a_driver_with_another_clock),
                         TEST(after_a_long_silence));
}
