/* SPDX-License-Identifier: Apache-2.0 */

/* The launch hooks on a driver of the tests' own. The test is the arbiter, too. */

#include "preload/launch/admission.h"
#include "preload/launch/batch.h"
#include "preload/launch/context.h"
#include "preload/launch/tunables.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "test.h"

enum { STREAMS = 8, COMERS = 4, FIRSTS = 20000 };

/* ---- launches ---- */

static void launch(uint64_t nsec) {
        launch_in(16, 0x1000, nsec, 0);
}

/* The most that may be charged since `begin_at`: the time that has passed, with a margin. Idle time
 * between launches may count if this thread was delayed. */
static uint64_t most_since(uint64_t begin_at) {
        uint64_t now = launch_now();

        return ((driver.end > now ? driver.end : now) - begin_at) * 5 / 4 + 2 * MSEC;
}

/* Checks the measured use. The page may report more, until later work has made up for it. */
static void between(uint64_t least, uint64_t most) {
        int64_t used = process_get(&gate)->usage[0].used;

        ASSERT_TRUE(used >= (int64_t) least && used <= (int64_t) most);
        ASSERT_TRUE((int64_t) row()->busy >= used);
}

static void which_slices_are_limited(void) {
        begin();
        ASSERT_TRUE(admission_gate() == &gate);
        limits.schedule.flags = 0;
        ASSERT_TRUE(admission_gate() == NULL);
        limits.core_percent = 30;
        ASSERT_TRUE(admission_gate() == &gate);
        limits.policy = 6;
        ASSERT_TRUE(admission_gate() == NULL);
        limits.policy = 4;
        limits.flags = SLICE_FLAG_OPEN;
        ASSERT_TRUE(admission_gate() == NULL);
        limits.flags = 0;
        limits.core_percent = 100;
        ASSERT_TRUE(admission_gate() == NULL);
        limits.core_percent = 0;
        limits.policy = 1;
        limits.max_inst = 4;
        ASSERT_TRUE(admission_gate() == &gate);
}

static void busy_is_the_cards_time(void) {
        uint64_t begin_at;
        pthread_t driver_thread;

        begin();
        begin_at = driver.end;
        driver_thread = drive();
        for (unsigned i = 0; i < 1000; i++)
                launch(30000);
        stop(driver_thread);
        settle();
        ASSERT_INT(row()->in_flight, 0);
        ASSERT_INT(row()->wants, 0);
        between(1000 * 30000 * 9 / 10, most_since(begin_at));
}

/* The work of a stream that is destroyed continues and is measured. The driver is not asked about
 * that stream any more. */
static void destroyed_stream_is_measured(void) {
        uint64_t begin_at;

        begin();
        begin_at = driver.end;
        for (unsigned i = 0; i < 3; i++)
                launch_in(32, 0x1000, 2 * MSEC, 0);
        launch_in(16, 0x1000, MSEC, 0);
        context_destroy_stream((CuHandle) 32);
        stream_is_dead((CuHandle) 32, true);
        launch_in(16, 0x1000, MSEC, 0);
        settle();
        ASSERT_INT(row()->in_flight, 0);
        ASSERT_INT(row()->wants, 0);
        between(8 * MSEC * 9 / 10, most_since(begin_at));
}

static void launches_are_counted(void) {
        uint32_t before;

        begin();
        before = row()->launched;
        for (unsigned i = 0; i < 10; i++)
                launch(1000);
        driver.capturing = 1;
        launch(1000);
        driver.capturing = 0;
        settle();
        ASSERT_INT(row()->launched - before, 10);
}

static void *charging(void *unused) {
        for (unsigned i = 0; i < 100000; i++)
                process_charge(process_get(&gate), 0, 1000 * MSEC, 1000, 1);
        over = 1;
        return unused;
}

/* The page never reports estimates as use, not even to a reader while another thread charges:
 * `busy` does not decrease, and in the end it is the measured use. */
static void estimates_are_not_reported(void) {
        pthread_t charger;

        begin();
        over = 0;
        ASSERT_OK(pthread_create(&charger, NULL, charging, NULL));
        while (!over)
                process_report_want(process_get(&gate), 0, launch_now());
        ASSERT_OK(pthread_join(charger, NULL));
        process_report_idle(process_get(&gate), 0);
        ASSERT_INT(row()->busy, 100000 * 1000);
}

/* Two streams on one card: each stream's kernels last as long as those of both together. The use is
 * the card's time, counted once. */
static void union_over_streams(void) {
        uint64_t begin_at;
        pthread_t driver_thread;

        begin();
        begin_at = driver.end;
        driver_thread = drive();
        for (unsigned i = 0; i < 500; i++) {
                launch_in(16, 0x1000, 20000, 0);
                launch_in(32, 0x2000, 20000, 0);
        }
        stop(driver_thread);
        settle();
        between(1000 * 20000 * 9 / 10, most_since(begin_at));
}

static void refused_launches_cost_nothing(void) {
        begin();
        for (unsigned i = 0; i < 100; i++)
                launch_in(16, 0x7000, 0, 1);
        all_is_over();
        ASSERT_INT(process_get(&gate)->usage[0].in_flight, 0);
        ASSERT_INT(process_get(&gate)->usage[0].used, 0);
}

static void stream_without_marks(void) {
        begin();
        for (unsigned i = 0; i < 10; i++)
                launch_in(99, 0x1000, 30000, 0);
        ASSERT_INT(process_get(&gate)->usage[0].in_flight, 0); /* each launch was waited for */
        ASSERT_INT(process_get(&gate)->usage[0].kernels, 0);
        ASSERT_TRUE(row()->busy > 0);
}

/* Without events there are no batches: launches are held to the depth, and charged by the clock. */
static void without_batches(void) {
        uint64_t begin_at, most = 0, now;

        begin();
        put(REAL_cuEventCreate, NULL);
        limits.schedule.depth = 2 * MSEC;
        begin_at = driver.end;
        for (unsigned i = 0; i < 100; i++) {
                launch_in(16, 0x9100, MSEC, 0);
                now = launch_now();
                most = driver.end > now && driver.end - now > most ? driver.end - now : most;
        }
        ASSERT_TRUE(most <= 4 * MSEC);
        between(100 * MSEC * 8 / 10, most_since(begin_at));
}

static void captured_launches_are_not_counted(void) {
        begin();
        limits.schedule.window = 0; /* closed: a launch would wait */
        driver.capturing = 1;
        launch(1000);
        driver.capturing = 2;
        launch(1000);
        ASSERT_INT(process_get(&gate)->usage[0].in_flight, 0);
        ASSERT_INT(row()->busy, 0);
}

/* Any call of the driver except the launch may be missing. */
static void an_old_driver(void) {
        static const unsigned missing[] = {
                REAL_cuLaunchHostFunc,   REAL_cuStreamIsCapturing, REAL_cuThreadExchangeStreamCaptureMode,
                REAL_cuEventElapsedTime, REAL_cuStreamQuery,       REAL_cuEventCreate,
                REAL_cuEventRecord,      REAL_cuEventQuery};

        for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
                begin();
                put(missing[i], NULL);
                for (unsigned k = 0; k < 50; k++)
                        launch(300000);
                do
                        settle(); /* without host functions, the test polls until the work is measured */
                while (missing[i] == REAL_cuLaunchHostFunc && row()->busy == 0);
                ASSERT_TRUE(row()->busy > 0);
                ASSERT_INT(process_get(&gate)->usage[0].closed,
                           missing[i] == REAL_cuLaunchHostFunc ? process_get(&gate)->usage[0].closed : 0);
        }
}

static void no_context(void) {
        begin();
        driver.context_error = 201;
        limits.schedule.window = 0;
        launch_in(16, 0x1000, 1000, 201); /* the driver reports the error */
        launch_in(16, 0x1000, 1000, 201);
        ASSERT_INT(row()->wants, 0);
}

/* More contexts than there are entries for, one after the other. Each ends with work in flight. */
static void contexts_come_and_go(void) {
        begin();
        for (unsigned i = 0; i < 200; i++) {
                for (unsigned k = 0; k < 20; k++)
                        launch(300000);
                context_destroy_end(context_destroy_begin((CuHandle) &driver), (CuHandle) &driver, true);
                ASSERT_INT(process_get(&gate)->usage[0].closed, 0);
                if (i % 3 == 0)
                        all_is_over();
        }
        all_is_over();
        ASSERT_INT(process_get(&gate)->usage[0].in_flight, 0);
        ASSERT_INT(row()->in_flight, 0);
}

static uint32_t n_closed(void) {
        return process_get(&gate)->usage[0].closed;
}

/* One round of the test below. Returns false if this thread was delayed until the card was idle
 * again. refused: the driver refuses to destroy the context. */
static bool leaves_on_the_card(bool refused) {
        uint64_t begin_at;
        uint32_t closed;
        Context *ended;

        begin();
        begin_at = driver.end;
        for (unsigned i = 0; i < 4; i++) { /* teaches the length of the function; the next launch is longer */
                launch(10 * 1000);
                settle();
        }
        launch(30 * MSEC);
        ended = context_destroy_begin((CuHandle) &driver);
        closed = n_closed();
        if (launch_now() >= driver.end)
                return false;
        ASSERT_TRUE(closed > 0);
        if (!refused)
                (void) usleep(30000);
        context_destroy_end(ended, (CuHandle) &driver, !refused);
        closed = n_closed();
        if (refused && launch_now() >= driver.end)
                return false;
        ASSERT_INT(closed, refused);
        all_is_over();
        ASSERT_INT(n_closed(), 0);
        ASSERT_INT(row()->in_flight, 0);
        between(29 * MSEC, most_since(begin_at) + 10 * MSEC);
        return true;
}

/* Work that is on the card when its context ends is in flight and charged until the driver has
 * waited for it. If the driver refuses to destroy the context, nothing ends. */
static void context_ends_with_work_on_the_card(void) {
        unsigned tries = 0;

        while (!leaves_on_the_card(false))
                ASSERT_TRUE(tries++ < 100);
        while (!leaves_on_the_card(true))
                ASSERT_TRUE(tries++ < 100);
}

/* The driver's thread is occupied by a host function of the program. A waiting thread queries the
 * events itself, and batches are used again before their callbacks come. A callback that comes late
 * is not taken for the end of the work that is on the card then. */
static void late_host_functions(void) {
        enum { LATE = CONTEXT_BATCHES + 2 };
        ProcessUsage *m;
        int card;

        begin();
        m = &process_get(&gate)->usage[0];
        for (unsigned i = 0; i < LATE; i++) {
                Context *c = context_get(process_get(&gate), (uintptr_t) &driver, &card);
                uint64_t since;

                launch(2 * MSEC);
                ASSERT_INT(m->closed, 1);
                (void) usleep(20000);
                batch_poll(process_get(&gate), c, false, launch_now());
                ASSERT_INT(m->closed, 1); /* no thread waits, so no event is queried */
                since = launch_now();
                do { /* from the estimated end on; the estimate may be late if this thread was delayed */
                        ASSERT_TRUE(launch_now() - since < 100 * 1000 * MSEC);
                        batch_poll(process_get(&gate), c, true, launch_now());
                        (void) usleep(100);
                } while (m->closed > 0);
        }
        launch(50 * MSEC);
        ASSERT_INT(m->closed, 1);
        ASSERT_INT(m->followed, 0); /* there was a batch for each */
        for (unsigned i = 0; i < LATE; i++)
                ASSERT_TRUE(one_is_over());
        ASSERT_INT(m->closed, 1);
        all_is_over();
        ASSERT_INT(m->closed, 0);
}

/* A host function of the program keeps the driver's thread for long. The driver's queue does not
 * fill up. The end of work without a callback is seen at the next poll. */
static void many_late_host_functions(void) {
        ProcessUsage *m;
        Context *c;
        int card;

        begin();
        m = &process_get(&gate)->usage[0];
        c = context_get(process_get(&gate), (uintptr_t) &driver, &card);
        m->n_host_running = 1;
        for (unsigned i = 0; i < MAX_CALLBACKS + 50; i++) {
                launch(MSEC / 2);
                /* Without a callback the launch itself polls, perhaps after the end of the work. */
                ASSERT_TRUE(m->closed == 1 || (i >= MAX_CALLBACKS && m->closed == 0));
                while (m->closed > 0)
                        batch_poll(process_get(&gate), c, i < MAX_CALLBACKS, launch_now());
        }
        ASSERT_INT(driver.n_calls - driver.n_called, MAX_CALLBACKS);
        m->n_host_running = 0;
        ASSERT_INT(m->followed, 0);
        all_is_over();
        ASSERT_INT(m->in_flight, 0);
}

static void after_a_fault(void) {
        begin();
        for (unsigned k = 0; k < 20; k++)
                launch(300000);
        launch_in(16, 0x1000, 0, 719);
        ASSERT_INT(process_get(&gate)->usage[0].closed, 0);
        ASSERT_INT(process_get(&gate)->usage[0].in_flight, 0);
        all_is_over();
}

/* ---- without batches ---- */

static void *launch_unbatched(void *unused) {
        launch_in(16, 0x9100, 25 * MSEC, 0);
        return unused;
}

/* Each thread waits until the card is idle. The time is charged once. */
static void threads_without_batches(void) {
        pthread_t t[4];
        uint64_t begin_at;

        begin();
        put(REAL_cuEventCreate, NULL);
        begin_at = driver.end;
        for (size_t i = 0; i < 4; i++)
                ASSERT_OK(pthread_create(&t[i], NULL, launch_unbatched, NULL));
        for (size_t i = 0; i < 4; i++)
                ASSERT_OK(pthread_join(t[i], NULL));
        between(75 * MSEC, most_since(begin_at));
}

/* Work that is still on the card when the thread gives up is charged as estimated, and is known as
 * long from then on. */
static void endless_work_without_a_batch(void) {
        begin();
        put(REAL_cuEventCreate, NULL);
        launch_in(16, 0x9200, FAR * 1000 * MSEC, 0);
        between(MAX_COLD_NS / 2, MAX_COLD_NS);
        ASSERT_TRUE(estimate_nsec(estimate_find(&process_get(&gate)->estimates, 0x9200, 1)) >= MAX_FOLLOW_NS);
}

/* ---- two contexts ---- */

static __thread CuHandle current_one;

static int get_current_one(CuHandle *ret) {
        *ret = current_one;
        return 0;
}

static void *launch_in_other(void *unused) {
        current_one = &gate;
        launch(1000);
        return unused;
}

/* The open batch of a context that no thread uses any more has ended. A launch in another context
 * notices that, and so does not pass because of it. */
static void work_of_an_unused_context_ends(void) {
        ProcessUsage *m;
        pthread_t other;

        begin();
        m = &process_get(&gate)->usage[0];
        put(REAL_cuCtxGetCurrent, (void *) get_current_one);
        current_one = &driver;
        for (unsigned i = 0; i < 100; i++) {
                launch(1000);
                all_is_over();
        }
        do
                launch(1000);
        while (m->in_flight == 0 || m->closed > 0);
        limits.schedule.window = 1 << 1;
        ASSERT_OK(pthread_create(&other, NULL, launch_in_other, NULL));
        while (m->waiters == 0 || m->in_flight > 0)
                (void) usleep(1000);
        (void) usleep(1500000); /* longer than STUCK_NS */
        ASSERT_INT(m->waiters, 1);
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_join(other, NULL));
        context_forget(process_get(&gate), (CuHandle) &gate);
        end_all();
}

/* ---- the primary context ---- */

static _Atomic int retained;

static int primary_retain(CuHandle *ret, int device) {
        ASSERT_INT(device, 0);
        retained++;
        *ret = (CuHandle) &driver;
        return 0;
}

static int primary_release(int device) {
        ASSERT_INT(device, 0);
        retained--;
        return 0;
}

static int primary_state(int device, unsigned *flags, int *active) {
        ASSERT_INT(device, 0);
        *flags = 0;
        *active = retained > 0;
        return 0;
}

static void release_primary(void) {
        CuHandle context = context_primary_begin(0);

        ASSERT_TRUE(context == &driver);
        (void) primary_release(0);
        context_primary_end(0, context);
}

static void begin_primary(int users) {
        begin();
        put(REAL_cuDevicePrimaryCtxRetain, (void *) primary_retain);
        put(REAL_cuDevicePrimaryCtxRelease_v2, (void *) primary_release);
        put(REAL_cuDevicePrimaryCtxGetState, (void *) primary_state);
        retained = users;
}

/* A release of the primary context ends nothing while it has other users. */
static void primary_context_is_released(void) {
        unsigned live, tries = 0;
        uint32_t closed;

        do {
                ASSERT_TRUE(tries++ < 100);
                begin_primary(2);
                for (unsigned i = 0; i < 10; i++)
                        launch(300000);
                ASSERT_TRUE(n_closed() > 0);
                release_primary();
                closed = n_closed();
        } while (launch_now() >= driver.end); /* again if this thread was delayed */
        ASSERT_TRUE(closed > 0);
        live = driver.n_live;
        release_primary(); /* by the last user: the library has no events left in it, and may not use them */
        ASSERT_INT(driver.n_live, live);
        ASSERT_INT(process_get(&gate)->usage[0].closed, 0);
        ASSERT_INT(process_get(&gate)->usage[0].in_flight, 0);
        ASSERT_TRUE(context_primary_begin(0) == NULL);
        all_is_over();
}

/* ---- threads ---- */

enum { THREADS = 64, ROUNDS = 200 };

static _Atomic unsigned passed;

static void *launching(void *argument) {
        for (unsigned i = 0; i < ROUNDS; i++) {
                launch_in(16 + (uintptr_t) argument % STREAMS, 0x1000 + i % 7 * 16, 20000, 0);
                passed++;
        }
        return NULL;
}

/* Windows open and close while 64 threads launch. All launches pass, and all counters return to
 * 0. */
static void threads(void) {
        pthread_t launchers[THREADS], helper;
        uint32_t number = 1;

        begin();
        limits.schedule.depth = 2 * MSEC;
        limits.schedule.window = 0;
        passed = 0;
        over = 0;
        ASSERT_OK(pthread_create(&helper, NULL, driving, NULL));
        for (uintptr_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_create(&launchers[i], NULL, launching, (void *) i));
        while (passed < THREADS * ROUNDS) {
                number++;
                limits.schedule.window = number << 1 | SCHED_WINDOW_OPEN;
                (void) usleep(2000);
                limits.schedule.window = number << 1;
                (void) usleep(500);
        }
        for (size_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_join(launchers[i], NULL));
        over = 1;
        ASSERT_OK(pthread_join(helper, NULL));
        settle();
        ASSERT_INT(process_get(&gate)->usage[0].closed, 0);
        ASSERT_INT(process_get(&gate)->usage[0].waiters, 0);
        ASSERT_INT(process_get(&gate)->usage[0].in_flight, 0);
        ASSERT_INT(row()->in_flight, 0);
        ASSERT_INT(row()->wants, 0);
}

static void *ending(void *unused) {
        while (passed < THREADS * ROUNDS) {
                context_destroy_end(context_destroy_begin((CuHandle) &driver), (CuHandle) &driver,
                                    passed % 3 != 0);
                (void) usleep(500);
        }
        return unused;
}

/* The program announces the end of contexts while other threads launch in them, and they do not
 * end. These threads keep their batches, and nothing stays in flight for ever. */
static void contexts_end_while_threads_launch(void) {
        pthread_t launchers[THREADS], helper, ender;

        begin();
        passed = 0;
        over = 0;
        ASSERT_OK(pthread_create(&helper, NULL, driving, NULL));
        ASSERT_OK(pthread_create(&ender, NULL, ending, NULL));
        for (uintptr_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_create(&launchers[i], NULL, launching, (void *) i));
        for (size_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_join(launchers[i], NULL));
        ASSERT_OK(pthread_join(ender, NULL));
        over = 1;
        ASSERT_OK(pthread_join(helper, NULL));
        settle();
        context_forget(process_get(&gate), (CuHandle) &driver);
        ASSERT_INT(process_get(&gate)->usage[0].closed, 0);
        ASSERT_INT(process_get(&gate)->usage[0].in_flight, 0);
        ASSERT_INT(row()->in_flight, 0);
        ASSERT_INT(row()->wants, 0);
}

/* Waits until all batches are measured, also if the driver's thread was delayed. Then nothing is
 * charged by an estimate. */
static void come_to_rest(void) {
        settle();
        while (process_get(&gate)->usage[0].closed > 0)
                (void) usleep(100);
        settle();
}

/* Whether enough short lengths were measured. Delays of this thread count as length. */
static bool is_known_to_be_short(void) {
        const Estimate *e = estimate_find(&process_get(&gate)->estimates, 0x1000, 1);

        return !estimate_is_cold(e) && estimate_nsec(e) < MSEC / 10;
}

/* A function is launched with little work, often enough to be known, and then with much work. The
 * first long launch is measured and charged. Those behind it, whose end is not seen, are charged as
 * estimated. Idle time is not charged. */
static void function_gets_more_work(void) {
        pthread_t helper;
        unsigned tries = 0;
        int64_t used;

        begin();
        over = 0;
        ASSERT_OK(pthread_create(&helper, NULL, driving, NULL));
        do {
                ASSERT_TRUE(tries++ < 1000);
                for (unsigned i = 0; i < 100; i++) {
                        launch(1000);
                        (void) usleep(100);
                }
                come_to_rest();
        } while (!is_known_to_be_short());
        (void) usleep(2000); /* so that the next launch is measured */
        used = process_get(&gate)->usage[0].used;
        for (unsigned i = 0; i < 4; i++)
                launch(20 * MSEC);
        while (driver.end > launch_now() || process_get(&gate)->usage[0].closed > 0)
                (void) usleep(100);
        (void) usleep(300000);
        launch(1000);
        used = process_get(&gate)->usage[0].used - used;
        printf("# used %.2f ms\n", (double) used / 1e6);
        ASSERT_TRUE(used >= (int64_t) (20 * MSEC) * 9 / 10 && used <= (int64_t) (90 * MSEC));
        over = 1;
        ASSERT_OK(pthread_join(helper, NULL));
        settle();
}

static void *launch_long(void *n) {
        for (unsigned i = 0; i < 200; i++) {
                launch(50 * MSEC);
                (*(_Atomic unsigned *) n)++;
        }
        return NULL;
}

/* A function is known as short, and then its kernels become very long. Before the end of the first
 * one is seen, at most 128 launches pass. */
static void launches_in_flight_are_bounded(void) {
        static _Atomic unsigned n;
        pthread_t helper, launcher;

        begin();
        n = 0;
        for (unsigned i = 0; i < 200; i++) {
                launch(1000);
                (void) usleep(10);
                all_is_over();
        }
        settle();
        ASSERT_INT(process_get(&gate)->usage[0].kernels, 0);
        limits.schedule.depth = 100 * MSEC;
        ASSERT_OK(pthread_create(&launcher, NULL, launch_long, (void *) &n));
        while (process_get(&gate)->usage[0].waiters == 0 && n < 200)
                (void) usleep(100);
        ASSERT_TRUE(n <= 128);
        over = 0;
        ASSERT_OK(pthread_create(&helper, NULL, driving, NULL));
        while (n < 200) { /* ends the work as if it were short */
                (void) pthread_mutex_lock(&lock);
                driver.end = launch_now();
                for (unsigned i = 0; i < CALLS; i++)
                        driver.calls[i].at = 0;
                (void) pthread_mutex_unlock(&lock);
                (void) usleep(1000);
        }
        ASSERT_OK(pthread_join(launcher, NULL));
        for (unsigned i = 0; i < EVENTS; i++)
                driver.events[i].at = launch_now();
        over = 1;
        ASSERT_OK(pthread_join(helper, NULL));
        settle();
        ASSERT_INT(process_get(&gate)->usage[0].kernels, 0);
}

static void *launch_one(void *unused) {
        launch(1000);
        return unused;
}

/* The driver accepts a launch although the thread had no context. Only that first launch is not
 * counted: the next one waits for a window. */
static void without_context(void) {
        pthread_t launcher;

        begin();
        driver.context_error = 201;
        limits.schedule.window = 0;
        launch(1000);
        ASSERT_OK(pthread_create(&launcher, NULL, launch_one, NULL));
        while (process_get(&gate)->usage[0].waiters == 0 || row()->wants == 0) /* it counts, then reports */
                (void) usleep(100);
        limits.schedule.window = 2 << 1 | SCHED_WINDOW_OPEN;
        ASSERT_OK(pthread_join(launcher, NULL));
        ASSERT_TRUE(row()->busy > 0);
}

static void *launch_many(void *n) {
        for (unsigned i = 0; i < 500; i++) {
                launch(MSEC);
                (*(_Atomic unsigned *) n)++;
                (void) usleep(50);
        }
        return NULL;
}

/* Launches take longer than estimated. When the first one does not end in time, the following ones
 * wait until the length is known. */
static void late_launch_delays_the_next(void) {
        static _Atomic unsigned n;
        pthread_t helper, launcher;
        uint64_t begin_at, least;

        begin();
        n = 0;
        over = 0;
        limits.schedule.depth = 2 * MSEC;
        ASSERT_OK(pthread_create(&helper, NULL, driving, NULL));
        for (unsigned i = 0; i < 100; i++) {
                launch(1000);
                (void) usleep(100);
        }
        begin_at = launch_now();
        ASSERT_OK(pthread_create(&launcher, NULL, launch_many, (void *) &n));
        while (n < 450)
                (void) usleep(1000);
        least = launch_now() - begin_at;
        ASSERT_TRUE(least >= 300 * MSEC); /* with the old estimate, all would pass in a tenth of that */
        ASSERT_OK(pthread_join(launcher, NULL));
        over = 1;
        ASSERT_OK(pthread_join(helper, NULL));
        settle();
}

static void wait_for_the_card(void) {
        while (launch_now() < driver.end)
                (void) usleep(50);
}

static uint32_t most_in_flight(unsigned n, uint64_t nsec) {
        uint32_t most = 0, now;

        for (unsigned i = 0; i < n; i++) {
                launch(nsec);
                now = process_get(&gate)->usage[0].kernels;
                most = now > most ? now : most;
        }
        wait_for_the_card();
        return most;
}

/* A function that was hardly measured, or that was both short and long before, has few launches in
 * flight. */
static void few_launches_until_measured(void) {
        pthread_t helper;

        begin();
        helper = drive();
        launch_in(16, 0x7000, 5000, 0);
        wait_for_the_card();
        for (unsigned i = 0; i < 20; i++) {
                launch_in(16, 0x7000, 5 * MSEC, 0);
                ASSERT_TRUE(process_get(&gate)->usage[0].kernels <= 64);
        }
        wait_for_the_card();
        for (unsigned i = 0; i < 3; i++) {
                (void) most_in_flight(300, 5000);
                ASSERT_TRUE(most_in_flight(20, 5 * MSEC) <= 128);
        }
        stop(helper);
        settle();
}

/* A launch waits for work that does not end before this same thread does something later. The
 * launch must pass after a while. */
static void launch_wait_is_bounded(void) {
        uint64_t begin_at;
        unsigned tries = 0;

        begin();
        do {
                ASSERT_TRUE(tries++ < 1000);
                for (unsigned i = 0; i < 100; i++) {
                        launch(1000);
                        (void) usleep(100);
                        (void) one_is_over();
                }
                settle();
        } while (!is_known_to_be_short());
        (void) usleep(2000);
        launch(1000); /* marked, but its end is not observed */
        driver.end = launch_now() + FAR * 1000 * MSEC;
        for (unsigned i = 0; i < EVENTS; i++)
                driver.events[i].at = driver.end;
        (void) usleep(5000);
        begin_at = launch_now();
        for (unsigned i = 0; i < 2; i++) /* two may be in flight */
                launch(1000);
        ASSERT_TRUE(launch_now() - begin_at >= STUCK_NS);
        end_all();
}

/* The window has ended by its time, and the arbiter has not written that yet. The drain is reported
 * nevertheless. */
static void window_ends_by_its_time(void) {
        begin();
        launch(MSEC);
        settle();
        ASSERT_INT(row()->drained, 0);
        launch(MSEC);
        limits.schedule.closes = launch_now();
        settle();
        ASSERT_INT(row()->drained, 1);
}

static bool rung(int doorbell) {
        char byte;

        return read(doorbell, &byte, 1) == 1;
}

/* Gives the gate's slice a doorbell. Returns a descriptor that reads from it. */
static int make_doorbell(char home[], char doorbell[64]) {
        int fd;

        ASSERT_TRUE(mkdtemp(home) != NULL);
        (void) snprintf(doorbell, 64, "%s/doorbell", home);
        ASSERT_OK(mkfifo(doorbell, 0600));
        fd = open(doorbell, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        (void) snprintf(gate.cards[0].slice.path, SLICE_PATH, "%s/counters", home);
        return fd;
}

static void remove_doorbell(int fd, const char *home, const char *doorbell) {
        gate.cards[0].slice.path[0] = '\0';
        (void) close(fd);
        (void) unlink(doorbell);
        (void) rmdir(home);
}

/* A process reports its drain and rings. One that still wants the card reports the time as well. */
static void drain_rings_the_doorbell(void) {
        char home[] = "/tmp/launch-XXXXXX", doorbell[64];
        int fd = make_doorbell(home, doorbell);

        for (unsigned i = 0; i < 2; i++) {
                bool wants = i == 0;
                uint64_t before;

                begin();
                limits.schedule.window = 5 << 1;
                row()->wants = wants ? 1 : 0;
                before = launch_now();
                process_report_drained(process_get(&gate), 0);
                ASSERT_INT(row()->drained, 5);
                ASSERT_TRUE(wants ? row()->wants >= before : row()->wants == 0);
                ASSERT_TRUE(rung(fd));
        }
        remove_doorbell(fd, home, doorbell);
}

/* A process that becomes idle in its open window rings once for that pause. Of pauses in a row it
 * rings only for some. */
static void pause_rings_the_doorbell(void) {
        char home[] = "/tmp/launch-XXXXXX", doorbell[64];
        int fd = make_doorbell(home, doorbell);
        ProcessUsage *usage;

        begin();
        limits.schedule.window = 5 << 1 | SCHED_WINDOW_OPEN;
        limits.schedule.closes = UINT64_MAX;
        usage = &process_get(&gate)->usage[0];
        for (unsigned i = 0; i < 4; i++) {
                bool lately = i == 2;

                usage->rang_for_pause = 1; /* it rang for the pause that ends now */
                process_report_want(process_get(&gate), 0, launch_now());
                ASSERT_TRUE(rung(fd));
                usage->rang_at = lately ? launch_now() + 1000 * MSEC : 0; /* even on a slow machine */
                process_report_idle(process_get(&gate), 0);
                ASSERT_INT(row()->wants, 0);
                ASSERT_INT(rung(fd), !lately);
                process_report_idle(process_get(&gate), 0);
                ASSERT_FALSE(rung(fd));
        }
        limits.schedule.flags = 0; /* without windows */
        process_report_want(process_get(&gate), 0, launch_now());
        ASSERT_TRUE(rung(fd));
        process_report_idle(process_get(&gate), 0);
        ASSERT_FALSE(rung(fd));
        remove_doorbell(fd, home, doorbell);
}

/* Threads that use a gate at the same time, when it is new or after a fork. Each of them sees it
 * complete. */
static pthread_barrier_t all_here;
static Gate fresh[2];

static void *coming(void *makes) {
        for (long round = 1; round <= FIRSTS; round++) {
                Gate *g = &fresh[round % 2];

                (void) pthread_barrier_wait(&all_here);
                if (makes)
                        g->pid = 1 + round;
                (void) pthread_barrier_wait(&all_here);
                ASSERT_TRUE(process_get(g)->gate == g);
        }
        return NULL;
}

static void threads_use_new_gate_together(void) {
        pthread_t comers[COMERS];

        ASSERT_OK(pthread_barrier_init(&all_here, NULL, COMERS));
        for (size_t i = 0; i < COMERS; i++)
                ASSERT_OK(pthread_create(&comers[i], NULL, coming, i == 0 ? &all_here : NULL));
        for (size_t i = 0; i < COMERS; i++)
                ASSERT_OK(pthread_join(comers[i], NULL));
        ASSERT_OK(pthread_barrier_destroy(&all_here));
        begin();
}

int main(void) {
        return TEST_MAIN(TEST(which_slices_are_limited), TEST(busy_is_the_cards_time),
                         TEST(destroyed_stream_is_measured), TEST(launches_are_counted),
                         TEST(estimates_are_not_reported), TEST(union_over_streams),
                         TEST(refused_launches_cost_nothing), TEST(stream_without_marks),
                         TEST(captured_launches_are_not_counted), TEST(an_old_driver), TEST(no_context),
                         TEST(contexts_come_and_go), TEST(context_ends_with_work_on_the_card),
                         TEST(late_host_functions), TEST(many_late_host_functions), TEST(after_a_fault),
                         TEST(threads_without_batches), TEST(endless_work_without_a_batch),
                         TEST(work_of_an_unused_context_ends), TEST(primary_context_is_released),
                         TEST(threads), TEST(contexts_end_while_threads_launch),
                         TEST(function_gets_more_work), TEST(late_launch_delays_the_next),
                         TEST(without_batches), TEST(launches_in_flight_are_bounded), TEST(without_context),
                         TEST(launch_wait_is_bounded), TEST(few_launches_until_measured),
                         TEST(window_ends_by_its_time), TEST(threads_use_new_gate_together),
                         TEST(drain_rings_the_doorbell), TEST(pause_rings_the_doorbell));
}
