/* SPDX-License-Identifier: Apache-2.0 */

/* Copies and fills on a driver of the tests' own: which of them wait, and that each is counted
 * once. */

#include "preload/launch/admission.h"

#include "driver.h"
#include "test.h"

static const Copy copy = {COPY_FROM_HOST, false, 1 << 20};

static ProcessUsage *usage(void) {
        return &process_get(&gate)->usage[0];
}

static void nothing_is_in_flight(void) {
        end_all();
        ASSERT_INT(usage()->in_flight, 0);
        ASSERT_INT(usage()->kernels, 0);
        ASSERT_INT(usage()->closed, 0);
}

/* The kernel may wait for what the copy brings. Without an arbiter, too, it is not held, and is
 * charged to the balance. */
static void copy_behind_a_kernel_is_not_held(void) {
        AdmittedLaunch l;

        begin();
        limits.core_percent = 10;
        launch_in(16, 0x1000, FAR * 1000 * MSEC, 0);
        limits.schedule.window = 1 << 1;
        for (unsigned round = 0; round < 2; round++) {
                admission_enter_copy(&gate, &l, &copy, (CuHandle) 32, false);
                ASSERT_FALSE(l.waited);
                admission_leave(&l, 0);
                atomic_store(&limits.schedule.seen, 0);
        }
        ASSERT_INT(usage()->balance, -(int64_t) l.nsec);
        nothing_is_in_flight();
}

/* The driver's test fails if something is recorded in the capture, or asked that ends it. With
 * several cards the stream may be of another context than the current one. */
static void captured_copy_is_not_held(void) {
        AdmittedLaunch l;

        for (uint32_t cards = 1; cards <= 2; cards++) {
                begin();
                limits.schedule.window = 1 << 1;
                driver.capturing = 1;
                gate.n_cards = cards;
                admission_enter_copy(&gate, &l, &copy, (CuHandle) 16, false);
                gate.n_cards = 1;
                ASSERT_TRUE(l.process == NULL);
                admission_leave(&l, 0);
                driver.capturing = 0;
                nothing_is_in_flight();
        }
}

/* A copy that is made, one that the driver refuses, one that ends the context, and one for which
 * there is no batch. */
static void each_copy_is_counted_once(void) {
        static const int results[] = {0, 1, 700, 0};
        AdmittedLaunch l;

        for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
                begin();
                admission_enter_copy(&gate, &l, &(Copy){COPY_FROM_HOST, true, 1 << 20},
                                     i == 3 ? (CuHandle) 99 : NULL, false);
                ASSERT_INT(usage()->kernels, 0);
                ASSERT_INT(usage()->closed, 1);
                ASSERT_INT(l.batch == NULL, i == 3);
                admission_leave(&l, results[i]);
                nothing_is_in_flight();
        }
}

int main(void) {
        return TEST_MAIN(TEST(copy_behind_a_kernel_is_not_held), TEST(captured_copy_is_not_held),
                         TEST(each_copy_is_counted_once));
}
