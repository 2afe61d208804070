/* SPDX-License-Identifier: Apache-2.0 */

/* Twelve threads of one process on four lanes. Each releases what the previous one has reserved. */

#include <pthread.h>
#include <unistd.h>

#include "pages.h"

enum { THREADS = 12, ROUNDS = 3000, LIMIT = 40 };

static SliceUser slice;
static _Atomic uint32_t left[THREADS]; /* units that the next thread releases */
static _Atomic int64_t n_reserved;

static void *work(void *datum) {
        size_t i = (size_t) (uintptr_t) datum;
        uint32_t units;

        for (unsigned round = 0; round < ROUNDS; round++) {
                units = (uint32_t) (i + round) % 7 + 1;
                if (slice_reserve(&slice, units * SLICE_UNIT) == 0) {
                        (void) atomic_fetch_add(&n_reserved, 1);
                        (void) atomic_fetch_add(&left[(i + 1) % THREADS], units);
                }
                ASSERT_TRUE(slice_used(&slice) <= LIMIT * SLICE_UNIT);
                units = atomic_exchange(&left[i], 0);
                slice_release(&slice, units * SLICE_UNIT);
                if (round % 500 == 0)
                        (void) slice_reap(&slice);
        }
        return NULL;
}

static void lanes(void) {
        Pages p = pages_make(LIMIT * SLICE_UNIT);
        pthread_t threads[THREADS];
        uint64_t rest = 0;

        ASSERT_OK(slice_open(p.path, &slice));
        for (size_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_create(&threads[i], NULL, work, (void *) (uintptr_t) i));
        for (size_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_join(threads[i], NULL));
        for (size_t i = 0; i < THREADS; i++)
                rest += atomic_load(&left[i]) * SLICE_UNIT;
        ASSERT_INT(slice_used(&slice), rest);
        ASSERT_INT(pages_report(&p).held[slice.row], rest);
        ASSERT_TRUE(atomic_load(&n_reserved) > THREADS);
        slice_release(&slice, rest);
        ASSERT_INT(slice_used(&slice), 0);
        ASSERT_TRUE(slice_row_at_rest(&slice.counters->rows[slice.row]));
        slice_close(&slice);
        pages_remove(&p);
}

static _Atomic bool ended;

static void *complain(void *datum) {
        (void) datum;
        while (!atomic_load(&ended))
                (void) !write(STDERR_FILENO, "something is wrong\n", 19);
        return NULL;
}

/* A program without standard error gets EBADF for its messages. Were the counters opened under that
 * number, the messages would be written over them. */
static void closed_standard_error(void) {
        Pages p = pages_make(LIMIT * SLICE_UNIT);
        pid_t pid = fork();
        pthread_t thread;
        int status, r = 0;

        ASSERT_TRUE(pid >= 0);
        if (pid == 0) {
                (void) close(STDERR_FILENO);
                r = pthread_create(&thread, NULL, complain, NULL);
                for (unsigned round = 0; round < ROUNDS && r == 0; round++) {
                        r = slice_open(p.path, &slice);
                        if (r == 0)
                                slice_close(&slice);
                }
                atomic_store(&ended, true);
                _exit(r != 0 || pthread_join(thread, NULL) != 0);
        }
        ASSERT_INT(waitpid(pid, &status, 0), pid);
        ASSERT_INT(status, 0);
        pages_remove(&p);
}

int main(void) {
        return TEST_MAIN(TEST(lanes), TEST(closed_standard_error));
}
