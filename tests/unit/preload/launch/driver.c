/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "preload/launch/batch.h"
#include "preload/launch/context.h"
#include "preload/memory/gate_state.h"

#include <unistd.h>

#include "test.h"

/* ---- a gate without files ---- */

SliceLimits limits;
SliceCounters counters;
Gate gate = {.n_cards = 1, .pid = 1};

Gate *gate_get(void) {
        return &gate;
}

SliceWork *row(void) {
        return &counters.rows[0].work;
}

_Atomic int over;

/* ---- the driver ---- */

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct Driver driver;
static uint64_t waits_for; /* end of the event that the library's stream was told to wait for */

static int get_current(CuHandle *ret) {
        *ret = (CuHandle) &driver;
        return driver.context_error;
}

static int event_create(CuHandle *ret, unsigned flags) {
        int r = 2;

        ASSERT_INT(flags, 0);
        (void) pthread_mutex_lock(&lock);
        for (unsigned i = 0; i < EVENTS && r != 0; i++)
                if (!driver.events[i].used || driver.events[i].destroyed) {
                        driver.events[i] = (Event){.used = true};
                        driver.n_live++;
                        *ret = &driver.events[i];
                        r = 0;
                }
        (void) pthread_mutex_unlock(&lock);
        return r;
}

static int event_destroy(CuHandle e) {
        (void) pthread_mutex_lock(&lock);
        ASSERT_FALSE(((Event *) e)->destroyed);
        ((Event *) e)->destroyed = true;
        driver.n_live--;
        (void) pthread_mutex_unlock(&lock);
        return 0;
}

/* ---- streams that were destroyed ---- */

static _Atomic bool dead[STREAM_NAMES];
void (*_Atomic when_asked)(CuHandle stream);

void stream_is_dead(CuHandle stream, bool is) {
        ASSERT_TRUE((uintptr_t) stream < STREAM_NAMES);
        dead[(uintptr_t) stream] = is;
}

static bool is_dead(CuHandle stream) {
        return (uintptr_t) stream < STREAM_NAMES && dead[(uintptr_t) stream];
}

/* ---- the driver's calls ---- */

static int cuda_event_record(CuHandle e, CuHandle stream) {
        ASSERT_FALSE(is_dead(stream));
        (void) pthread_mutex_lock(&lock);
        ASSERT_FALSE(((Event *) e)->destroyed);
        ASSERT_INT(driver.capturing, 0); /* the library records nothing in a capture */
        ((Event *) e)->at = driver.end > launch_now() ? driver.end : launch_now();
        (void) pthread_mutex_unlock(&lock);
        return stream == (CuHandle) 99 ? 400 : 0;
}

static int event_query(CuHandle e) {
        void (*asked)(CuHandle) = when_asked;
        int r;

        if (asked)
                asked(NULL);
        (void) pthread_mutex_lock(&lock);
        ASSERT_FALSE(((Event *) e)->destroyed);
        r = ((Event *) e)->at <= launch_now() ? 0 : CU_ERROR_NOT_READY;
        (void) pthread_mutex_unlock(&lock);
        return r;
}

static int event_elapsed(float *ret, CuHandle from, CuHandle to) {
        (void) pthread_mutex_lock(&lock);
        ASSERT_FALSE(((Event *) from)->destroyed || ((Event *) to)->destroyed);
        *ret = (float) ((double) (int64_t) (((Event *) to)->at - ((Event *) from)->at) / 1e6);
        (void) pthread_mutex_unlock(&lock);
        return 0;
}

static int stream_create(CuHandle *ret, unsigned flags) {
        ASSERT_INT(flags, 1); /* CU_STREAM_NON_BLOCKING: no wait for the default stream */
        (void) pthread_mutex_lock(&lock);
        *ret = (CuHandle) (uintptr_t) (1000 + driver.n_streams++);
        (void) pthread_mutex_unlock(&lock);
        return 0;
}

static int stream_destroy(CuHandle stream) {
        ASSERT_TRUE((uintptr_t) stream >= 1000);
        return 0;
}

static int stream_wait(CuHandle stream, CuHandle e, unsigned flags) {
        ASSERT_TRUE((uintptr_t) stream >= 1000 && flags == 0);
        (void) pthread_mutex_lock(&lock);
        waits_for = ((Event *) e)->at;
        (void) pthread_mutex_unlock(&lock);
        return 0;
}

static int host_call(CuHandle stream, CuHostFn run, void *data) {
        ASSERT_TRUE((uintptr_t) stream >= 1000);
        (void) pthread_mutex_lock(&lock);
        driver.calls[driver.n_calls % CALLS].run = run;
        driver.calls[driver.n_calls % CALLS].at = waits_for;
        driver.calls[driver.n_calls++ % CALLS].data = data;
        ASSERT_TRUE(driver.n_calls - driver.n_called <= CALLS);
        (void) pthread_mutex_unlock(&lock);
        return 0;
}

/* As NVIDIA's: for a stream that is captured it ends the capture. */
static int stream_get_context(CuHandle stream, CuHandle *ret) {
        (void) stream;
        ASSERT_INT(driver.capturing, 0);
        *ret = (CuHandle) &driver;
        return 0;
}

static int stream_capturing(CuHandle stream, int *ret) {
        ASSERT_FALSE(is_dead(stream));
        *ret = driver.capturing;
        return 0;
}

static int stream_query(CuHandle stream) {
        void (*asked)(CuHandle) = when_asked;
        int r;

        ASSERT_FALSE(is_dead(stream));
        if (asked)
                asked(stream);
        (void) pthread_mutex_lock(&lock);
        r = driver.end <= launch_now() ? 0 : CU_ERROR_NOT_READY;
        (void) pthread_mutex_unlock(&lock);
        return r;
}

__thread int mode_of_thread;

static int exchange_mode(int *mode) {
        int before = mode_of_thread;

        mode_of_thread = *mode;
        *mode = before;
        return 0;
}

void put(unsigned number, void *function) {
        atomic_store(&real_table[number], (uintptr_t) function);
}

/* Calls the host function of the oldest batch if its time has come. Returns whether it did. */
bool one_is_over(void) {
        CuHostFn run = NULL;
        void *data = NULL;

        (void) pthread_mutex_lock(&lock);
        if (driver.n_called < driver.n_calls && driver.calls[driver.n_called % CALLS].at <= launch_now()) {
                run = driver.calls[driver.n_called % CALLS].run;
                data = driver.calls[driver.n_called++ % CALLS].data;
        }
        (void) pthread_mutex_unlock(&lock);
        if (run)
                run(data);
        return run != NULL;
}

void all_is_over(void) {
        while (one_is_over() || driver.n_called < driver.n_calls)
                ;
}

/* This test is the arbiter: while the test continues, the arbiter counts as present. */
static void write_heartbeat(void) {
        atomic_store(&limits.schedule.seen, launch_now() + 9000 * MSEC);
}

void *driving(void *unused) {
        while (!over) {
                write_heartbeat();
                if (!one_is_over())
                        (void) usleep(100);
        }
        return unused;
}

/* Starts the driver's thread. */
pthread_t drive(void) {
        pthread_t t;

        over = 0;
        ASSERT_OK(pthread_create(&t, NULL, driving, NULL));
        return t;
}

void stop(pthread_t t) {
        over = 1;
        ASSERT_OK(pthread_join(t, NULL));
}

void begin(void) {
        real_base = 1;
        put(REAL_cuCtxGetCurrent, (void *) get_current);
        put(REAL_cuEventCreate, (void *) event_create);
        put(REAL_cuEventDestroy_v2, (void *) event_destroy);
        put(REAL_cuEventQuery, (void *) event_query);
        put(REAL_cuEventRecord, (void *) cuda_event_record);
        put(REAL_cuEventElapsedTime, (void *) event_elapsed);
        put(REAL_cuStreamCreate, (void *) stream_create);
        put(REAL_cuStreamDestroy_v2, (void *) stream_destroy);
        put(REAL_cuStreamWaitEvent, (void *) stream_wait);
        put(REAL_cuLaunchHostFunc, (void *) host_call);
        put(REAL_cuStreamGetCtx, (void *) stream_get_context);
        put(REAL_cuStreamIsCapturing, (void *) stream_capturing);
        put(REAL_cuStreamQuery, (void *) stream_query);
        put(REAL_cuThreadExchangeStreamCaptureMode, (void *) exchange_mode);
        context_forget(process_get(&gate), (CuHandle) &driver);
        all_is_over();
        /* Contexts of the tests before may have ended while threads used their events. */
        memset(driver.events, 0, sizeof driver.events);
        driver.n_live = 0;
        memset(&limits, 0, sizeof limits);
        memset(&counters, 0, sizeof counters);
        driver.capturing = driver.context_error = 0;
        when_asked = NULL;
        for (size_t i = 0; i < STREAM_NAMES; i++)
                dead[i] = false;
        driver.end = launch_now();
        gate.pid++; /* a new process: it has no state of the tests before */
        gate.cards[0].usable = true;
        gate.cards[0].slice.limits = &limits;
        gate.cards[0].slice.counters = &counters;
        write_heartbeat();
        limits.schedule.flags = SCHED_F_GATED;
        limits.schedule.window = 1 << 1 | SCHED_WINDOW_OPEN;
        limits.schedule.closes = launch_now() + FAR * 1000 * MSEC;
        limits.schedule.depth = FAR * 1000 * MSEC;
        ASSERT_TRUE(process_get(&gate) != NULL);
}

/* ---- launches ---- */

void launch_in(uintptr_t stream, uintptr_t function, uint64_t nsec, int result) {
        AdmittedLaunch l;

        write_heartbeat();
        admission_enter(&gate, &l, (CuHandle) function, 1, (CuHandle) stream, false);
        ASSERT_INT(mode_of_thread, 0);
        if (result == 0) {
                (void) pthread_mutex_lock(&lock);
                driver.end = (driver.end > launch_now() ? driver.end : launch_now()) + nsec;
                (void) pthread_mutex_unlock(&lock);
        }
        admission_leave(&l, result);
        ASSERT_INT(mode_of_thread, 0);
}

void end_work(void) {
        (void) pthread_mutex_lock(&lock);
        driver.end = launch_now();
        for (unsigned i = 0; i < EVENTS; i++)
                driver.events[i].at = driver.events[i].at < driver.end ? driver.events[i].at : driver.end;
        for (unsigned i = 0; i < CALLS; i++)
                driver.calls[i].at = 0;
        (void) pthread_mutex_unlock(&lock);
}

void end_all(void) {
        end_work();
        settle();
}

/* Closes open batches, waits for them, and measures them. */
void settle(void) {
        int card;

        for (unsigned i = 0; i < 3; i++) {
                batch_poll(process_get(&gate), context_get(process_get(&gate), (uintptr_t) &driver, &card),
                           true, launch_now());
                all_is_over();
        }
}
