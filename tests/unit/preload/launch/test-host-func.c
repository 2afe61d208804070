/* SPDX-License-Identifier: Apache-2.0 */

/* Host functions of the program between launches, on a driver of the test's own. The test calls
 * them as the driver would. */

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

/* There are PLACES slots and no more. Each function gets its own argument. A slot is free again
 * when the function was called, or when the driver refused it. */
static void number_of_slots(void) {
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

/* A host function is not wrapped in a capture, because it is called at each launch of the graph. It
 * is not wrapped without a context either, because the driver reports that error, nor without a
 * limit. */
static void functions_without_slot(void) {
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

/* The driver may still call the function after the context has failed, so the slot stays. */
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

/* Launches work that does not begin, because it is behind a host function that runs. Returns the
 * thread that runs the function. */
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

/* The window is closed, and a launch waits. The row reports the window's work as drained, because
 * the work is blocked by a host function. The next window has room for the launch, and then the row
 * reports the work in flight again. */
static void blocked_until_a_launch_is_admitted(void) {
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

/* A thread waits for its copy, which is behind the same host function. */
static void copy_is_blocked_with_the_work_before_it(void) {
        pthread_t caller = begin_behind(), launcher;
        AdmittedLaunch copy;

        admission_enter_copy(&gate, &copy, &(Copy){COPY_FROM_HOST, true, 1 << 20}, NULL, false);
        limits.schedule.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (row()->drained != 1 || row()->in_flight != 0)
                (void) usleep(100);
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        ASSERT_TRUE(row()->in_flight > 0);
        end_work();
        admission_leave(&copy, 0);
        end_behind(caller);
        ASSERT_INT(usage()->closed, 0);
}

/* The host function ends without the launch, so it did not wait for it. Its work is reported in
 * flight again at once, and the next host functions are given more time. */
static void function_ends_without_the_launch(void) {
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

/* Work that has begun may just be long, so it does not count as blocked. */
static void begun_work_is_not_blocked(void) {
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

/* A launch does not wait for a long host function while nothing is in flight, although both are in
 * one stream. */
static void long_function_with_nothing_in_flight(void) {
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
        atomic_store(&usage()->host_nsec, UINT64_C(3600000) * MSEC); /* as if measured */
        waited = usage()->waited;
        limits.schedule.depth = 5 * MSEC;
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        ASSERT_OK(pthread_join(launcher, NULL));
        ASSERT_INT(usage()->n_host_funcs_running, 1);
        ASSERT_TRUE(usage()->waited == waited);
        end_behind(caller);
}

/* Waits for 0.1 ms, with the arbiter present. */
static void rest(unsigned times) {
        ASSERT_TRUE(times < 600000); /* a minute */
        limits.schedule.seen = launch_now() + 9000 * MSEC;
        (void) usleep(100);
}

static void *launching_what_is_new(void *unused) {
        launch_in(16, 0x2000, 1000, 0);
        return unused;
}

/* The work is reported as blocked, so no window ignores its backlog. A launch that exceeds the
 * limit of blocked work is admitted nevertheless, but later. */
static void blocked_work_and_a_long_launch(void) {
        pthread_t caller = begin_behind(), launcher;

        atomic_store(&usage()->in_flight, 38 * MSEC); /* the limit is 40, and a new function counts as 4 */
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

/* More work is in flight than when it was reported as blocked, so no launch is admitted. The row
 * reports it in flight again, and the next window ignores the backlog. */
static void blocked_report_is_withdrawn(void) {
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

/* A launch is behind the host functions of its own stream. The legacy default stream has two
 * handles: its host functions are ahead of all launches, and its launches are behind all host
 * functions. */
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
        p = give_in(2); /* the per-thread stream, which has the thread's own key */
        ASSERT_TRUE(is_behind(spin_self()));
        host_func_run(p);
}

static void *launching_in_32(void *unused) {
        launch_in(32, 0x1000, 1000, 0);
        return unused;
}

/* With work in flight and room for more: long host functions delay launches into their own stream,
 * and no others. */
static void functions_delay_their_own_stream(void) {
        pthread_t launcher;
        uint64_t waited;
        HostFuncSlot *p;

        begin();
        launch_in(16, 0x1000, FAR * 1000 * MSEC, 0);
        p = give_in(32);
        atomic_store(&usage()->host_nsec, UINT64_C(3600000) * MSEC);
        limits.schedule.depth = 1000 * MSEC;
        waited = usage()->waited;
        /* If this thread loses its processor here, the work in flight must not become late. */
        atomic_store(&usage()->closed_end, launch_now() + FAR * 1000 * MSEC);
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

/* A host function ends just after the last of many admitted launches. Returns the ns after which
 * the next one is taken to wait for a launch. held: another launch waits. */
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

/* A host function that waits for a lock ends behind the last launch under that lock, when no launch
 * waits. Then the next wait is shorter. On a slow machine the end may be late, so this is tried
 * several times. */
static void function_waits_for_many_launches(void) {
        unsigned shorter = 0;

        for (unsigned i = 0; i < 200 && shorter == 0; i++)
                shorter += learnt(false) < 2 * MSEC;
        ASSERT_INT(shorter, 1);
        for (unsigned i = 0; i < 10; i++)
                ASSERT_TRUE(learnt(true) >= 2 * MSEC);
}

int main(void) {
        return TEST_MAIN(TEST(number_of_slots), TEST(functions_without_slot), TEST(after_a_fault),
                         TEST(blocked_until_a_launch_is_admitted),
                         TEST(copy_is_blocked_with_the_work_before_it),
                         TEST(function_ends_without_the_launch), TEST(begun_work_is_not_blocked),
                         TEST(long_function_with_nothing_in_flight), TEST(blocked_work_and_a_long_launch),
                         TEST(blocked_report_is_withdrawn), TEST(streams),
                         TEST(functions_delay_their_own_stream), TEST(function_waits_for_many_launches));
}
