/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of the program's between launches, on a driver of the test's own; the test calls them as the driver would. */

#include "turnstile/hosts.h"
#include "turnstile/turnstile.h"

#include <unistd.h>

#include "driver.h"
#include "test.h"

enum { PLACES = 256 };

static unsigned called;

static void count(void *by) {
        called += *(unsigned *) by;
}

static void count_back(CuHandle stream, CuResult result, void *by) {
        ASSERT_TRUE(stream == (CuHandle) 16);
        ASSERT_INT(result, 3);
        count(by);
}

static HostPlace *give(CuHostFn run, void *data) {
        return turnstile_host(&gate, &(HostCall){run, NULL, data}, (CuHandle) 16, false);
}

static Meter *meter(void) {
        return &account_get(&gate)->meters[0];
}

/* So many, and no more; each has what it was given, and is free again when it is called, or was refused. */
static void places(void) {
        static unsigned by[PLACES];
        HostPlace *all[PLACES];

        begin();
        called = 0;
        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < PLACES; i++) {
                        by[i] = i;
                        all[i] = i % 2 ? give(count, &by[i])
                                       : turnstile_host(&gate, &(HostCall){NULL, count_back, &by[i]},
                                                        (CuHandle) 16, false);
                        ASSERT_TRUE(all[i] != NULL);
                }
                ASSERT_TRUE(give(count, &by[0]) == NULL);
                ASSERT_INT(meter()->hosts, PLACES);
                for (unsigned i = 0; i < PLACES; i++)
                        if (round == 1)
                                turnstile_host_given(&gate, all[i], 1);
                        else if (i % 2)
                                hosts_run(all[i]);
                        else
                                hosts_back((CuHandle) 16, 3, all[i]);
                ASSERT_INT(meter()->hosts, 0);
                ASSERT_INT(meter()->inside, 0);
        }
        ASSERT_INT(called, 2 * (PLACES * (PLACES - 1) / 2));
}

/* What is captured is called as often as the graph is launched; and where there is no context the driver is to say so. */
static void none_of_these(void) {
        unsigned by = 1;

        begin();
        driver.capturing = 1;
        ASSERT_TRUE(give(count, &by) == NULL);
        driver.capturing = 0;
        driver.context_error = 201;
        ASSERT_TRUE(give(count, &by) == NULL);
        driver.context_error = 0;
        limits.turn.flags = 0;
        ASSERT_TRUE(give(count, &by) == NULL);
}

/* After the context's end the driver may call it still: the place stays. */
static void after_a_fault(void) {
        unsigned by = 1;
        HostPlace *p;

        begin();
        p = give(count, &by);
        ASSERT_TRUE(p != NULL);
        turnstile_host_given(&gate, p, 700);
        called = 0;
        hosts_run(p);
        ASSERT_INT(called, 1);
        ASSERT_INT(meter()->hosts, 0);
}

static _Atomic bool may_end;

static void wait_for_word(void *unused) {
        (void) unused;
        while (!may_end)
                (void) usleep(100);
}

static void *calling(void *place) {
        hosts_run(place);
        return NULL;
}

static void *launching(void *unused) {
        launch_in(16, 0x1000, 1000, 0);
        return unused;
}

/* Work for the card that does not begin, because it is behind a function that is under way. */
static pthread_t begin_behind(void) {
        pthread_t caller;
        HostPlace *p;

        begin();
        may_end = false;
        p = give(wait_for_word, NULL);
        ASSERT_TRUE(p != NULL);
        driver.end = account_now() + FAR * 1000 * MSEC;
        launch_in(16, 0x1000, 1000, 0);
        ASSERT_OK(pthread_create(&caller, NULL, calling, p));
        return caller;
}

static void end_behind(pthread_t caller) {
        may_end = true;
        ASSERT_OK(pthread_join(caller, NULL));
        driver.end = account_now();
        for (unsigned i = 0; i < EVENTS; i++)
                driver.events[i].at = driver.end;
        for (unsigned i = 0; i < CALLS; i++)
                driver.calls[i].at = 0;
        settle();
}

/* The window is closed, and a launch held: the row says that it is over. A window that opens has room for that launch, and then what is in
 * flight is said again. */
static void it_stands_until_a_launch_is_let_in(void) {
        pthread_t caller = begin_behind(), launcher;
        uint64_t wait;

        limits.turn.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (row()->drained != 1 || row()->in_flight != 0)
                (void) usleep(100);
        ASSERT_TRUE(row()->wants != 0);
        ASSERT_TRUE(meter()->in_flight > 0);
        limits.turn.depth = 1;
        wait = meter()->host_wait;
        limits.turn.window = 2 << 1 | TURN_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        ASSERT_TRUE(row()->in_flight > 0);
        ASSERT_TRUE(row()->drained != 2);
        ASSERT_INT(wait, 0);
        end_behind(caller);
        ASSERT_TRUE(meter()->host_wait != 0);
}

/* It did not wait for the launch: that is in flight again at once, and the next ones are given longer. */
static void one_that_ends_by_itself(void) {
        pthread_t caller = begin_behind(), launcher;
        uint64_t wait = meter()->host_wait;

        limits.turn.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (row()->drained != 1 || row()->in_flight != 0)
                (void) usleep(100);
        may_end = true;
        while (row()->in_flight == 0)
                (void) usleep(100);
        ASSERT_INT(meter()->inside, 0);
        ASSERT_TRUE(meter()->host_wait > wait && meter()->host_nsec > 0);
        limits.turn.window = 2 << 1 | TURN_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        end_behind(caller);
}

/* Work that has begun may just be long. */
static void what_has_begun_does_not_stand(void) {
        pthread_t caller, launcher;
        HostPlace *p;

        begin();
        may_end = false;
        launch_in(16, 0x1000, FAR * 1000 * MSEC, 0);
        p = give(wait_for_word, NULL);
        ASSERT_TRUE(p != NULL);
        ASSERT_OK(pthread_create(&caller, NULL, calling, p));
        limits.turn.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (meter()->waiters == 0 || (row()->wants & WORK_WAITS) == 0)
                (void) usleep(100);
        ASSERT_TRUE(row()->drained != 1 && row()->in_flight > 0);
        ASSERT_FALSE(hosts_excuse(meter()));
        limits.turn.window = 2 << 1 | TURN_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        end_behind(caller);
}

/* One that takes long, in a stream of its own: what is launched meanwhile does not wait for it. With nothing in flight there is nothing to wait for. */
static void one_of_another_stream(void) {
        pthread_t caller, launcher;
        uint64_t waited;
        HostPlace *p;

        begin();
        may_end = false;
        p = give(wait_for_word, NULL);
        ASSERT_TRUE(p != NULL);
        ASSERT_OK(pthread_create(&caller, NULL, calling, p));
        while (meter()->host_since == 0)
                (void) usleep(100);
        atomic_store(&meter()->host_nsec, UINT64_C(3600000) * MSEC); /* as it has learnt */
        waited = meter()->waited;
        limits.turn.depth = 5 * MSEC;
        limits.turn.window = 2 << 1 | TURN_OPEN;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        ASSERT_OK(pthread_join(launcher, NULL));
        ASSERT_INT(meter()->inside, 1);
        ASSERT_TRUE(meter()->waited == waited);
        end_behind(caller);
}

int main(void) {
        return TEST_MAIN(TEST(places), TEST(none_of_these), TEST(after_a_fault),
                         TEST(it_stands_until_a_launch_is_let_in), TEST(one_that_ends_by_itself),
                         TEST(what_has_begun_does_not_stand), TEST(one_of_another_stream));
}
