/* SPDX-License-Identifier: Apache-2.0 */

/* Functions of the program's between launches, on a driver of the test's own; the test calls them
 * as the driver would. */

#include "preload/launch/host_func.h"

#include "preload/inject/spin.h"
#include "preload/launch/admission.h"

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

static HostFuncSlot *give(CuHostFn run, void *data) {
        return admission_host_func(&gate, &(HostFunc){run, NULL, data}, (CuHandle) 16, false);
}

static ProcessUsage *usage(void) {
        return &process_get(&gate)->usage[0];
}

/* So many, and no more; each has what it was given, and is free again when it is called, or was
 * refused. */
static void places(void) {
        static unsigned by[PLACES];
        HostFuncSlot *all[PLACES];

        begin();
        called = 0;
        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < PLACES; i++) {
                        by[i] = i;
                        all[i] = i % 2 ? give(count, &by[i])
                                       : admission_host_func(&gate, &(HostFunc){NULL, count_back, &by[i]},
                                                             (CuHandle) 16, false);
                        ASSERT_TRUE(all[i] != NULL);
                }
                ASSERT_TRUE(give(count, &by[0]) == NULL);
                ASSERT_INT(usage()->n_host_funcs, PLACES);
                for (unsigned i = 0; i < PLACES; i++)
                        if (round == 1)
                                admission_host_func_given(&gate, all[i], 1);
                        else if (i % 2)
                                host_func_run(all[i]);
                        else
                                host_func_callback((CuHandle) 16, 3, all[i]);
                ASSERT_INT(usage()->n_host_funcs, 0);
                ASSERT_INT(usage()->n_host_funcs_running, 0);
        }
        ASSERT_INT(called, 2 * (PLACES * (PLACES - 1) / 2));
}

/* What is captured is called as often as the graph is launched; and where there is no context the
 * driver is to say so. */
static void none_of_these(void) {
        unsigned by = 1;

        begin();
        driver.capturing = 1;
        ASSERT_TRUE(give(count, &by) == NULL);
        driver.capturing = 0;
        driver.context_error = 201;
        ASSERT_TRUE(give(count, &by) == NULL);
        driver.context_error = 0;
        limits.schedule.flags = 0;
        ASSERT_TRUE(give(count, &by) == NULL);
}

/* After the context's end the driver may call it still: the place stays. */
static void after_a_fault(void) {
        unsigned by = 1;
        HostFuncSlot *p;

        begin();
        p = give(count, &by);
        ASSERT_TRUE(p != NULL);
        admission_host_func_given(&gate, p, 700);
        called = 0;
        host_func_run(p);
        ASSERT_INT(called, 1);
        ASSERT_INT(usage()->n_host_funcs, 0);
}

static _Atomic bool may_end;

static void wait_for_word(void *unused) {
        (void) unused;
        while (!may_end)
                (void) usleep(100);
}

static void *calling(void *place) {
        host_func_run(place);
        return NULL;
}

static void *launching(void *unused) {
        launch_in(16, 0x1000, 1000, 0);
        return unused;
}

/* Work for the card that does not begin, because it is behind a function that is under way. */
static pthread_t begin_behind(void) {
        pthread_t caller;
        HostFuncSlot *p;

        begin();
        may_end = false;
        p = give(wait_for_word, NULL);
        ASSERT_TRUE(p != NULL);
        driver.end = launch_now() + FAR * 1000 * MSEC;
        launch_in(16, 0x1000, 1000, 0);
        ASSERT_OK(pthread_create(&caller, NULL, calling, p));
        return caller;
}

static void end_behind(pthread_t caller) {
        may_end = true;
        ASSERT_OK(pthread_join(caller, NULL));
        end_all();
}

/* The window is closed, and a launch held: the row says that it is over. A window that opens has
 * room for that launch, and then what is in flight is said again. */
static void it_stands_until_a_launch_is_let_in(void) {
        pthread_t caller = begin_behind(), launcher;
        uint64_t wait;

        limits.schedule.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (row()->drained != 1 || row()->in_flight != 0)
                (void) usleep(100);
        ASSERT_TRUE(row()->wants != 0);
        ASSERT_TRUE(usage()->in_flight > 0);
        limits.schedule.depth = 1;
        wait = usage()->host_wait;
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        ASSERT_TRUE(row()->in_flight > 0);
        ASSERT_TRUE(row()->drained != 2);
        ASSERT_INT(wait, 0);
        end_behind(caller);
        ASSERT_TRUE(usage()->host_wait != 0);
}

/* It did not wait for the launch: that is in flight again at once, and the next ones are given
 * longer. */
static void one_that_ends_by_itself(void) {
        pthread_t caller = begin_behind(), launcher;
        uint64_t wait = usage()->host_wait;

        limits.schedule.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (row()->drained != 1 || row()->in_flight != 0)
                (void) usleep(100);
        may_end = true;
        while (row()->in_flight == 0)
                (void) usleep(100);
        ASSERT_INT(usage()->n_host_funcs_running, 0);
        ASSERT_TRUE(usage()->host_wait > wait && usage()->host_nsec > 0);
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        end_behind(caller);
}

/* Work that has begun may just be long. */
static void what_has_begun_does_not_stand(void) {
        pthread_t caller, launcher;
        HostFuncSlot *p;

        begin();
        may_end = false;
        launch_in(16, 0x1000, FAR * 1000 * MSEC, 0);
        p = give(wait_for_word, NULL);
        ASSERT_TRUE(p != NULL);
        ASSERT_OK(pthread_create(&caller, NULL, calling, p));
        limits.schedule.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (usage()->waiters == 0 || (row()->wants & WORK_F_WAITER) == 0)
                (void) usleep(100);
        ASSERT_TRUE(row()->drained != 1 && row()->in_flight > 0);
        ASSERT_FALSE(host_func_excludes_backlog(usage()));
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        end_behind(caller);
}

/* One that takes long, in a stream of its own: what is launched meanwhile does not wait for it.
 * With nothing in flight there is nothing to wait for. */
static void one_of_another_stream(void) {
        pthread_t caller, launcher;
        uint64_t waited;
        HostFuncSlot *p;

        begin();
        may_end = false;
        p = give(wait_for_word, NULL);
        ASSERT_TRUE(p != NULL);
        ASSERT_OK(pthread_create(&caller, NULL, calling, p));
        while (usage()->host_running_since == 0)
                (void) usleep(100);
        atomic_store(&usage()->host_nsec, UINT64_C(3600000) * MSEC); /* as it has learnt */
        waited = usage()->waited;
        limits.schedule.depth = 5 * MSEC;
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        ASSERT_OK(pthread_join(launcher, NULL));
        ASSERT_INT(usage()->n_host_funcs_running, 1);
        ASSERT_TRUE(usage()->waited == waited);
        end_behind(caller);
}

/* With the arbiter there. */
static void rest(unsigned times) {
        ASSERT_TRUE(times < 600000); /* a minute */
        limits.schedule.seen = launch_now() + 9000 * MSEC;
        (void) usleep(100);
}

static void *launching_what_is_new(void *unused) {
        launch_in(16, 0x2000, 1000, 0);
        return unused;
}

/* It is said to stand, so no window is behind it: what would be too much with this launch lets it
 * in all the same, if later. */
static void what_stands_lets_in_what_is_long(void) {
        pthread_t caller = begin_behind(), launcher;

        atomic_store(&usage()->in_flight, 38 * MSEC); /* 40 may stand, and what is new counts as 4 */
        limits.schedule.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching_what_is_new, NULL));
        while (row()->drained != 1 || row()->in_flight != 0)
                (void) usleep(100);
        limits.schedule.depth = 10 * MSEC;
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        for (unsigned i = 0; row()->launched != 2; i++)
                rest(i);
        ASSERT_OK(pthread_join(launcher, NULL));
        ASSERT_TRUE(usage()->in_flight == 42 * MSEC);
        end_behind(caller);
}

/* There is more in flight than when it was said: the row says so, and the next window is behind
 * it. */
static void what_lets_nobody_in_is_taken_back(void) {
        pthread_t caller = begin_behind(), launcher;

        limits.schedule.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (row()->drained != 1 || row()->in_flight != 0)
                (void) usleep(100);
        (void) atomic_fetch_add(&usage()->in_flight, 40 * MSEC);
        limits.schedule.depth = 1;
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        for (unsigned i = 0; row()->in_flight == 0; i++)
                rest(i);
        ASSERT_FALSE(host_func_is_blocked(usage()));
        limits.schedule.flags |= SCHED_F_IGNORE_BACKLOG;
        limits.schedule.window = 3 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        end_behind(caller);
}

static HostFuncSlot *give_in(uintptr_t stream) {
        static unsigned by;
        HostFuncSlot *p = admission_host_func(&gate, &(HostFunc){count, NULL, &by}, (CuHandle) stream, false);

        ASSERT_TRUE(p != NULL);
        return p;
}

static bool is_behind(uintptr_t key) {
        return host_func_time(usage(), key, launch_now()) != 0;
}

/* What a launch may be behind: of its own stream; of the legacy one, under either name, all are,
 * and it is behind all. */
static void streams(void) {
        HostFuncSlot *p;

        begin();
        atomic_store(&usage()->host_nsec, MSEC);
        ASSERT_FALSE(is_behind(16) || is_behind(32) || is_behind(0));
        p = give_in(32);
        ASSERT_TRUE(!is_behind(16) && is_behind(32) && is_behind(0) && is_behind(1));
        host_func_run(p);
        ASSERT_FALSE(is_behind(32) || is_behind(0));
        for (uintptr_t legacy = 0; legacy <= 1; legacy++) {
                atomic_store(&usage()->host_nsec, MSEC);
                p = give_in(legacy);
                ASSERT_TRUE(is_behind(16) && is_behind(32) && is_behind(legacy));
                admission_host_func_given(&gate, p, 1);
                ASSERT_FALSE(is_behind(16) || is_behind(legacy));
        }
        p = give_in(2); /* the thread's own: whose lane is another's once in a while */
        ASSERT_TRUE(is_behind(spin_self()));
        host_func_run(p);
}

static void *launching_in_32(void *unused) {
        launch_in(32, 0x1000, 1000, 0);
        return unused;
}

/* With work in flight and room for more: functions that take long hold launches into their stream,
 * and no others. */
static void they_hold_their_own_stream(void) {
        pthread_t launcher;
        uint64_t waited;
        HostFuncSlot *p;

        begin();
        launch_in(16, 0x1000, FAR * 1000 * MSEC, 0);
        p = give_in(32);
        atomic_store(&usage()->host_nsec, UINT64_C(3600000) * MSEC);
        limits.schedule.depth = 1000 * MSEC;
        waited = usage()->waited;
        launch_in(16, 0x1000, 1000, 0);
        ASSERT_TRUE(usage()->waited == waited && usage()->in_flight > 0);
        ASSERT_OK(pthread_create(&launcher, NULL, launching_in_32, NULL));
        while (usage()->waiters == 0)
                (void) usleep(100);
        host_func_run(p);
        ASSERT_OK(pthread_join(launcher, NULL));
        ASSERT_TRUE(usage()->waited != waited);
        end_all();
}

/* ns until the next one is taken to wait for a launch, when one has ended just after the last of
 * many that were let in. */
static uint64_t learnt(bool held) {
        pthread_t caller;
        HostFuncSlot *p;

        begin();
        may_end = false;
        p = give(wait_for_word, NULL);
        ASSERT_OK(pthread_create(&caller, NULL, calling, p));
        while (usage()->host_running_since == 0)
                (void) usleep(100);
        atomic_store(&usage()->host_excluded, usage()->host_running_since);
        atomic_store(&usage()->backlog_allowed, 4);
        atomic_store(&usage()->waiters, held);
        host_func_admitted(usage(), launch_now());
        may_end = true;
        ASSERT_OK(pthread_join(caller, NULL));
        atomic_store(&usage()->waiters, 0);
        return usage()->host_wait;
}

/* Who holds a lock below many launches gives it back behind the last, and holds none then. A
 * machine may be slow, and the end late. */
static void one_that_waits_for_many(void) {
        unsigned shorter = 0;

        for (unsigned i = 0; i < 200 && shorter == 0; i++)
                shorter += learnt(false) < 2 * MSEC;
        ASSERT_INT(shorter, 1);
        for (unsigned i = 0; i < 10; i++)
                ASSERT_TRUE(learnt(true) >= 2 * MSEC);
}

int main(void) {
        return TEST_MAIN(TEST(places), TEST(none_of_these), TEST(after_a_fault),
                         TEST(it_stands_until_a_launch_is_let_in), TEST(one_that_ends_by_itself),
                         TEST(what_has_begun_does_not_stand), TEST(one_of_another_stream),
                         TEST(what_stands_lets_in_what_is_long), TEST(what_lets_nobody_in_is_taken_back),
                         TEST(streams), TEST(they_hold_their_own_stream), TEST(one_that_waits_for_many));
}
