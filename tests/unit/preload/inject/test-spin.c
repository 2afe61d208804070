/* SPDX-License-Identifier: Apache-2.0 */

/* A waiter outlasts a holder that has lost its processor, and a signal handler of the holder does
 * not wait. */

#include "preload/inject/spin.h"

#include <pthread.h>

#include "test.h"

static Spin lock;
static _Atomic bool held;

static void *hold(void *argument) {
        const struct timespec long_time = {.tv_nsec = 150 * 1000 *
                                                      1000}; /* five times the length of 100,000 yields */

        ASSERT_TRUE(spin_take(&lock));
        atomic_store(&held, true);
        while (nanosleep(&long_time, NULL) != 0)
                ;
        spin_drop(&lock);
        return argument;
}

static void outlasts_a_preempted_holder(void) {
        pthread_t thread;

        ASSERT_OK(pthread_create(&thread, NULL, hold, NULL));
        while (!atomic_load(&held))
                ;
        ASSERT_TRUE(spin_take(&lock));
        spin_drop(&lock);
        ASSERT_OK(pthread_join(thread, NULL));
}

/* As in a signal handler that interrupts the holder. */
static void fails_for_the_holder(void) {
        ASSERT_TRUE(spin_take(&lock));
        ASSERT_FALSE(spin_take(&lock));
        spin_drop(&lock);
        ASSERT_TRUE(spin_take(&lock));
        spin_drop(&lock);
}

int main(void) {
        return TEST_MAIN(TEST(outlasts_a_preempted_holder), TEST(fails_for_the_holder));
}
