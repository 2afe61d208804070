/* SPDX-License-Identifier: Apache-2.0 */

/* Many streams: idle ones give their batches back, and the driver is not asked about a stream that
 * was destroyed while other threads poll the open batches in it. */

#include <pthread.h>
#include <unistd.h>

#include "preload/launch/batch.h"
#include "preload/launch/context.h"
#include "preload/launch/tunables.h"

#include "driver.h"
#include "test.h"

#define STREAM ((CuHandle) 32)

enum { WORKERS = 8, ROUNDS = 300, NAMES = 4, FIRST_NAME = 4096 };

enum { GIVE_UP_NS = MAX_HOLDER_WAITS * HOLDERS_POLL_NS };

static _Atomic bool asking;       /* a thread is in a call of the driver */
static __thread bool stays;       /* calls of this thread last until the stream is destroyed */
static _Atomic bool destroyed;    /* the library has returned, so the stream may be destroyed */
static _Atomic unsigned given_up; /* destructions that did not wait until the other thread was done */

static Context *here(void) {
        int card;

        return context_get(process_get(&gate), (uintptr_t) &driver, &card);
}

/* Returns true if it took less than the limit of that wait, so it has waited for all other
 * threads. */
static bool end_stream(CuHandle stream) {
        uint64_t since = launch_now();

        context_destroy_stream(stream);
        if (launch_now() - since < GIVE_UP_NS)
                return true;
        given_up++;
        return false;
}

static void destroy(CuHandle stream) {
        (void) end_stream(stream);
        stream_is_dead(stream, true);
        destroyed = true;
}

static unsigned n_in(uint32_t state) {
        unsigned n = 0;

        for (unsigned i = 0; i < CONTEXT_BATCHES; i++)
                n += here()->batches[i].state == state;
        return n;
}

static unsigned n_open(void) {
        return n_in(BATCH_OPEN);
}

/* Makes queries of STREAM slow, and queries of events while a thread holds a batch. */
static void ask_slowly(CuHandle stream) {
        uint64_t since = launch_now();

        if (stream ? stream != STREAM : stays || n_in(BATCH_HELD) == 0)
                return;
        asking = true;
        while (!destroyed && (stays || launch_now() - since < 20 * MSEC))
                (void) usleep(500);
        ASSERT_TRUE(stays || !stream || !destroyed || launch_now() - since >= GIVE_UP_NS);
}

static void tend(void) {
        batch_poll(process_get(&gate), here(), true, launch_now());
}

static void *tending(void *unused) {
        tend();
        return unused;
}

/* Whether each open batch is past its estimated end. The estimates are too long if this thread was
 * delayed while they were made. */
static bool open_is_due(void) {
        bool due = true;

        for (unsigned i = 0; i < CONTEXT_BATCHES; i++)
                due &= here()->batches[i].state != BATCH_OPEN || launch_now() > here()->batches[i].over;
        return due;
}

/* Leaves one batch on the card, and one open behind it and past its estimated end. Neither has
 * begun. */
static void leave_one_open(void) {
        uint64_t since;

        begin();
        asking = destroyed = false;
        given_up = 0;
        for (unsigned i = 0; i < 100; i++) {
                launch_in((uintptr_t) STREAM, 0x1000, 1000, 0);
                all_is_over();
        }
        settle();
        (void) usleep(2000); /* so that the next launch is measured */
        driver.end = launch_now() + FAR * 1000 * MSEC;
        launch_in((uintptr_t) STREAM, 0x1000, 1000, 0);
        tend();
        ASSERT_INT(process_get(&gate)->usage[0].closed, 1);
        since = launch_now();
        do {
                ASSERT_TRUE(launch_now() - since < 100 * 1000 * MSEC);
                launch_in((uintptr_t) STREAM, 0x1000, 1000, 0);
        } while (n_open() == 0);
        ASSERT_INT(n_open(), 1);
        while (!open_is_due())
                (void) usleep(1000);
}

static void all_is_paid(void) {
        end_all();
        ASSERT_INT(n_open(), 0);
        ASSERT_INT(process_get(&gate)->usage[0].closed, 0);
        ASSERT_INT(process_get(&gate)->usage[0].in_flight, 0);
        ASSERT_INT(row()->in_flight, 0);
}

/* A batch that may not be queried ends by the clock, some time after its estimated end; or by its
 * last mark, if it has one. */
static void wait_for_open(void) {
        end_work();
        while (n_open() > 0) {
                (void) usleep(1000);
                tend();
        }
}

static void destroyed_below(void *(*thread)(void *) ) {
        pthread_t other;

        when_asked = ask_slowly;
        ASSERT_OK(pthread_create(&other, NULL, thread, NULL));
        while (!asking)
                (void) usleep(100);
        destroy(STREAM);
        ASSERT_OK(pthread_join(other, NULL));
        when_asked = NULL;
}

static void destroyed_in_time(void *(*thread)(void *) ) {
        unsigned tries = 0;

        leave_one_open();
        destroyed_below(thread);
        while (given_up > 0) {
                ASSERT_TRUE(tries++ < 100);
                end_all();
                leave_one_open();
                destroyed_below(thread);
        }
}

/* The destruction waits until the other thread has its answer, and has closed the batch or put it
 * back. */
static void destroyed_during_a_query(void) {
        destroyed_in_time(tending);
        ASSERT_INT(n_open(), 0);
        all_is_paid();
}

static void *tending_for_long(void *unused) {
        stays = true;
        return tending(unused);
}

/* The thread stays in the driver until the stream is gone. Then it asks no more about the stream,
 * and the work is charged as estimated. */
static void destroyed_during_an_endless_query(void) {
        leave_one_open();
        destroyed_below(tending_for_long);
        ASSERT_INT(given_up, 1);
        ASSERT_INT(n_open(), 0);
        all_is_paid();
}

static void destroyed_without_a_limit(void) {
        leave_one_open();
        limits.schedule.flags = 0;
        limits.policy = 6; /* native */
        ASSERT_TRUE(admission_gate() == NULL);
        destroy(STREAM);
        ASSERT_INT(n_open(), 0);
        all_is_paid();
}

/* The destruction of a stream in a capture records nothing, because that would end the capture. */
static void destroyed_in_a_capture(void) {
        leave_one_open();
        driver.capturing = 1;
        destroy(STREAM);
        ASSERT_INT(n_open(), 0); /* charged as estimated */
        driver.capturing = 0;
        all_is_paid();
}

/* ---- threads ---- */

static void yield_while_asked(CuHandle stream) {
        (void) stream;
        (void) usleep(20);
}

static void *working(void *which) {
        bool named[NAMES] = {false}; /* a thread that stood still may name it at any time */

        for (uintptr_t i = 0; i < ROUNDS; i++) {
                uintptr_t stream = FIRST_NAME + ((uintptr_t) which * NAMES + i % NAMES) * 16;

                stream_is_dead((CuHandle) stream, false);
                for (unsigned k = 0; k < 3; k++)
                        launch_in(stream, 0x1000 + i % 3 * 16, 20000, 0);
                if (!end_stream((CuHandle) stream))
                        named[i % NAMES] = true;
                stream_is_dead((CuHandle) stream, !named[i % NAMES]);
        }
        return NULL;
}

static void *looking_after(void *unused) {
        while (!over)
                tend();
        return unused;
}

static void many_threads_at_once(void) {
        pthread_t workers[WORKERS], helper, other;

        begin();
        given_up = 0;
        when_asked = yield_while_asked;
        helper = drive();
        ASSERT_OK(pthread_create(&other, NULL, looking_after, NULL));
        for (uintptr_t i = 0; i < WORKERS; i++)
                ASSERT_OK(pthread_create(&workers[i], NULL, working, (void *) i));
        for (size_t i = 0; i < WORKERS; i++)
                ASSERT_OK(pthread_join(workers[i], NULL));
        stop(helper);
        ASSERT_OK(pthread_join(other, NULL));
        printf("# %u of %u destructions were given up\n", given_up, (unsigned) WORKERS * ROUNDS);
        ASSERT_TRUE(given_up < WORKERS * ROUNDS / 10);
        if (given_up > 0)
                wait_for_open();
        ASSERT_INT(n_open(), 0);
        settle();
        all_is_paid();
}

/* As many streams as batches have one short launch each, and no further one. A launch in another
 * stream has a batch all the same. */
static void idle_streams(void) {
        enum { FUNCTION = 4096, SHORT = 10000, TRIES = 500 };
        const ProcessUsage *m = &process_get(&gate)->usage[0];
        unsigned full = 0;

        begin();
        for (unsigned i = 0; i < 200; i++) { /* until many may be in flight */
                launch_in(16, FUNCTION, SHORT, 0);
                all_is_over();
        }
        for (unsigned k = 0; k < TRIES && full < 3; k++) {
                settle();
                for (uintptr_t i = 0; i < CONTEXT_BATCHES; i++)
                        launch_in(FIRST_NAME + i, FUNCTION, SHORT, 0);
                all_is_over();
                full += n_open() == CONTEXT_BATCHES;
                while (!open_is_due())
                        (void) usleep(1000);
                (void) usleep(1000);
                launch_in(16, FUNCTION, SHORT, 0);
        }
        printf("# all batches were open %u times\n", full); /* never, if this thread is slow */
        ASSERT_INT(m->followed, 0);                         /* no launch was waited for */
        all_is_paid();
}

int main(void) {
        return TEST_MAIN(TEST(idle_streams), TEST(destroyed_during_a_query),
                         TEST(destroyed_during_an_endless_query), TEST(destroyed_without_a_limit),
                         TEST(destroyed_in_a_capture), TEST(many_threads_at_once));
}
