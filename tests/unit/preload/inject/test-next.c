/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that are passed on, in a process without an interposer between it and libc. In a build with
 * a sanitizer, its runtime is one. tests/blackbox/preload.py has the other cases. */

#include "preload/inject/next.h"

#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

enum { SIZE = 16384, THREADS = 8, TURNS = 200 };

static long map(size_t n) {
        return next_mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void same_results_as_the_kernel(void) {
        int ends[2], n = -1;
        long p = map(SIZE), q;

        ASSERT_TRUE(p > 0);
        ((volatile char *) p)[SIZE - 1] = 1;
        q = next_mremap((void *) p, SIZE, 2 * SIZE, MREMAP_MAYMOVE, NULL);
        ASSERT_TRUE(q > 0);
        ASSERT_INT(((volatile char *) q)[SIZE - 1], 1);
        ASSERT_OK(next_munmap((void *) q, 2 * SIZE));
        ASSERT_OK(pipe(ends));
        ASSERT_INT(write(ends[1], "123", 3), 3);
        ASSERT_OK(next_ioctl(ends[0], FIONREAD, &n));
        ASSERT_INT(n, 3);
        (void) close(ends[0]);
        (void) close(ends[1]);
}

static void refusals(void) {
        ASSERT_INT(map(0), -EINVAL);
        ASSERT_INT(next_munmap((void *) 1, 4096), -EINVAL);
        ASSERT_INT(next_mremap((void *) 1, 4096, 4096, 0, NULL), -EINVAL);
        ASSERT_INT(next_ioctl(-1, FIONREAD, NULL), -EBADF);
}

static void *turns(void *unused) {
        for (unsigned i = 0; i < TURNS; i++) {
                long p = map(SIZE);

                ASSERT_TRUE(p > 0);
                ASSERT_FALSE(next_is_reentry(NEXT_MMAP, SIZE, -1, 0));
                ASSERT_OK(next_munmap((void *) p, SIZE));
                ASSERT_FALSE(next_is_reentry(NEXT_MUNMAP, p, SIZE, 0));
        }
        return unused;
}

static void threads(void) {
        pthread_t all[THREADS];

        for (size_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_create(&all[i], NULL, turns, NULL));
        for (size_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_join(all[i], NULL));
}

int main(void) {
        return TEST_MAIN(TEST(same_results_as_the_kernel), TEST(refusals), TEST(threads));
}
