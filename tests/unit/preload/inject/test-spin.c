/* SPDX-License-Identifier: Apache-2.0 */

/* The lock of a guest: whoever waits for it outlasts a holder that has lost its processor, and does
 * not wait for himself. */

#include "preload/inject/spin.h"

#include <pthread.h>

#include "test.h"

static Spin lock;
static _Atomic bool held;

static void *hold(void *argument) {
        const struct timespec long_time = {.tv_nsec = 150 * 1000 *
                                                      1000}; /* five times what 100,000 yields take */

        ASSERT_TRUE(spin_take(&lock));
        atomic_store(&held, true);
        while (nanosleep(&long_time, NULL) != 0)
                ;
        spin_drop(&lock);
        return argument;
}

static void a_holder_without_a_processor(void) {
        pthread_t thread;

        ASSERT_OK(pthread_create(&thread, NULL, hold, NULL));
        while (!atomic_load(&held))
                ;
        ASSERT_TRUE(spin_take(&lock));
        spin_drop(&lock);
        ASSERT_OK(pthread_join(thread, NULL));
}

/* As a signal handler that comes in between. */
static void who_has_it_already(void) {
        ASSERT_TRUE(spin_take(&lock));
        ASSERT_FALSE(spin_take(&lock));
        spin_drop(&lock);
        ASSERT_TRUE(spin_take(&lock));
        spin_drop(&lock);
}

int main(void) {
        return TEST_MAIN(TEST(a_holder_without_a_processor), TEST(who_has_it_already));
}
