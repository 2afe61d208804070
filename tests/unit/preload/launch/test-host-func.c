/* SPDX-License-Identifier: Apache-2.0 */

/* Host functions of the program between launches, on a driver of the test's own. The test calls
 * them as the driver would. */

#include "preload/launch/host_func.h"

#include "preload/launch/admission.h"
#include "preload/launch/tunables.h"

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
                for (unsigned i = 0; i < PLACES; i++)
                        if (round == 1)
                                admission_host_func_given(all[i], 1);
                        else if (i % 2)
                                host_func_run(all[i]);
                        else
                                host_func_callback((CuHandle) 16, 3, all[i]);
                ASSERT_INT(usage()->n_host_running, 0);
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
        admission_host_func_given(p, 700);
        called = 0;
        host_func_run(p);
        ASSERT_INT(called, 1);
        ASSERT_INT(usage()->n_host_running, 0);
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

/* The window is closed, and the function may wait for the launch. So the launch passes, and the row
 * reports the work in flight all the time. */
static void launch_passes_while_a_function_runs(void) {
        pthread_t caller = begin_behind();

        limits.schedule.window = 1 << 1;
        launch_in(16, 0x1000, 1000, 0);
        ASSERT_TRUE(row()->in_flight > 0 && row()->drained != 1);
        end_behind(caller);
}

/* With nothing in flight a launch waits for its window, whatever host function runs. */
static void launch_with_nothing_in_flight_waits(void) {
        pthread_t caller, launcher;
        HostFuncSlot *p;

        begin();
        may_end = false;
        p = give(wait_for_word, NULL);
        ASSERT_TRUE(p != NULL);
        ASSERT_OK(pthread_create(&caller, NULL, calling, p));
        while (usage()->n_host_running == 0)
                (void) usleep(100);
        limits.schedule.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (usage()->waiters == 0)
                (void) usleep(100);
        (void) usleep(100000); /* a late stop would make this test pass, not fail */
        ASSERT_INT(usage()->waiters, 1);
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        end_behind(caller);
}

/* Work in flight is expected to last for an hour, so it is taken for running, not for blocked. */
static void launch_behind_long_work_waits(void) {
        pthread_t caller = begin_behind(), launcher;

        atomic_store(&usage()->closed_end, launch_now() + FAR * 1000 * MSEC);
        atomic_store(&usage()->in_flight, FAR * 500 * MSEC);
        limits.schedule.window = 1 << 1;
        ASSERT_OK(pthread_create(&launcher, NULL, launching, NULL));
        while (usage()->waiters == 0)
                (void) usleep(100);
        (void) usleep(100000);
        ASSERT_INT(usage()->waiters, 1);
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        end_behind(caller);
}

/* The time at which the work should end does not prolong the hold beyond the work's own length. */
static void launch_behind_a_wrong_end_passes(void) {
        pthread_t caller = begin_behind();

        atomic_store(&usage()->closed_end, launch_now() + FAR * 1000 * MSEC);
        limits.schedule.window = 1 << 1;
        launch_in(16, 0x1000, 1000, 0);
        end_behind(caller);
}

static void *calling_short_ones(void *unused) {
        unsigned by = 0;

        while (!may_end)
                host_func_run(host_func_take(0, &(HostFunc){.run = count, .data = &by}));
        return unused;
}

/* Functions that come and go beside one that stays do not renew its time. */
static void launch_passes_beside_short_functions(void) {
        pthread_t caller = begin_behind(), other;

        ASSERT_OK(pthread_create(&other, NULL, calling_short_ones, NULL));
        limits.schedule.window = 1 << 1;
        launch_in(16, 0x1000, 1000, 0);
        may_end = true;
        ASSERT_OK(pthread_join(other, NULL));
        end_behind(caller);
}

/* Without a host function the hold is longer. */
static void launch_behind_stuck_work_passes(void) {
        uint64_t since;

        begin();
        launch_in(16, 0x1000, FAR * 1000 * MSEC, 0);
        limits.schedule.window = 1 << 1;
        since = launch_now();
        launch_in(16, 0x1000, 1000, 0);
        ASSERT_TRUE(launch_now() - since >= STUCK_NS);
        end_all();
}

int main(void) {
        return TEST_MAIN(TEST(number_of_slots), TEST(functions_without_slot), TEST(after_a_fault),
                         TEST(launch_passes_while_a_function_runs), TEST(launch_with_nothing_in_flight_waits),
                         TEST(launch_behind_long_work_waits), TEST(launch_behind_a_wrong_end_passes),
                         TEST(launch_passes_beside_short_functions), TEST(launch_behind_stuck_work_passes));
}
