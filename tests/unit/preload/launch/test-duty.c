/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/duty.h"

#include "test.h"

#define MSEC UINT64_C(1000000)

static SliceCounters counters;
static SliceUser slice = {.counters = &counters, .path = "/proc/self/absent/counters"};
static ProcessUsage usage;
static uint64_t now;

static void begin(void) {
        static const ProcessUsage none;

        usage = none;
        counters = (SliceCounters){0};
        now = 1000000 * MSEC;
        duty_fill(&usage, &slice, 50, now);
}

static int64_t after(uint64_t nsec) {
        now += nsec;
        duty_fill(&usage, &slice, 50, now);
        return usage.balance;
}

static void balance_grows_with_time(void) {
        begin();
        ASSERT_INT(usage.balance, 0);
        ASSERT_TRUE(!duty_take(&usage, 1));
        ASSERT_INT(after(10 * MSEC), 5 * MSEC);
        ASSERT_INT(after(10 * MSEC), 10 * MSEC);
        ASSERT_INT(after(MSEC / 100), 10 * MSEC); /* too soon after the last look */
}

static void balance_is_limited_to_a_period(void) {
        begin();
        ASSERT_INT(after(3600 * 1000 * MSEC), 20 * MSEC);
        ASSERT_INT(after(MSEC), 20 * MSEC);
}

static void debt_is_waited_for(void) {
        begin();
        (void) after(2 * MSEC);
        ASSERT_TRUE(duty_take(&usage, 101 * MSEC));
        ASSERT_INT(usage.balance, -100 * (int64_t) MSEC);
        ASSERT_TRUE(!duty_take(&usage, 1));
        ASSERT_INT(duty_until(&usage, 50), 200 * MSEC);
        (void) after(200 * MSEC + 2);
        ASSERT_INT(duty_until(&usage, 50), 0);
        ASSERT_TRUE(duty_take(&usage, 1));
}

/* A thread that read the clock earlier, or a clock that was set back, adds and takes nothing. */
static void clock_goes_back(void) {
        begin();
        ASSERT_INT(after(10 * MSEC), 5 * MSEC);
        duty_fill(&usage, &slice, 50, now - 9 * MSEC);
        ASSERT_INT(usage.balance, 5 * MSEC);
        ASSERT_INT(after(2 * MSEC), 6 * MSEC);
}

/* The test cannot provide the other process's lock, so that process counts as alive. */
static void another_process_has_half(void) {
        begin();
        counters.rows[7].work.wants = 8;
        (void) after(100 * MSEC); /* the other process is counted from now on */
        usage.balance = 0;
        ASSERT_INT(after(8 * MSEC), 2 * MSEC);
        ASSERT_INT(after(1000 * MSEC), 10 * MSEC);
        counters.rows[7].work.wants = 0;
        ASSERT_INT(after(1000 * MSEC), 20 * MSEC);
}

int main(void) {
        return TEST_MAIN(TEST(balance_grows_with_time), TEST(balance_is_limited_to_a_period),
                         TEST(debt_is_waited_for), TEST(clock_goes_back), TEST(another_process_has_half));
}
