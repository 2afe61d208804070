/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/pin_key.h"

#include <fcntl.h>
#include <stdbool.h>
#include <time.h>

#include "base/sys.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Keys tell rows and exports apart. They are no secret: /proc/locks shows them to every process. If
 * two rows had the same key, the dead row would keep its bytes while the other one's files are
 * open. Then too much is counted for a while, never too little, and no lock is refused, because the
 * locks are shared ones. The exports of one process have different keys whatever else fails. */

static bool from_kernel(uint64_t *ret) {
        long fd, n;

        if (sys_call(SYS_getrandom, ret, sizeof *ret, 0) == (long) sizeof *ret)
                return true;
        fd = sys_call(SYS_openat, AT_FDCWD, "/dev/urandom", O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
        if (fd < 0)
                return false;
        n = sys_call(SYS_read, fd, ret, sizeof *ret);
        (void) sys_call(SYS_close, fd);
        return n == (long) sizeof *ret;
}

/* Random bits of the CPU (RDRAND); 0: not available. The time stamp counter is not used, because a
 * process may be forbidden to read it. */
static uint64_t from_processor(void) {
        unsigned long long value = 0;
#if defined(__x86_64__)
        unsigned a, b, c, d;
        unsigned char good = 0;

        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_RDRND))
                return 0;
        for (unsigned i = 0; i < 10 && !good; i++)
                __asm__ volatile("rdrand %0\n\tsetc %1" : "=r"(value), "=qm"(good) : : "cc");
        if (!good)
                return 0;
#endif
        return value;
}

/* A bijection in which every bit depends on every other (splitmix64). */
static uint64_t mixed(uint64_t x) {
        x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
        return x ^ x >> 31;
}

static uint64_t with_time(uint64_t key, int clock) {
        struct timespec t = {0, 0};

        (void) sys_call(SYS_clock_gettime, clock, &t);
        return mixed(key ^ (uint64_t) t.tv_sec * UINT64_C(1000000000) ^ (uint64_t) t.tv_nsec);
}

/* For sandboxes and old kernels without random numbers: values that differ between processes and
 * moments. The C library's random bytes (AT_RANDOM) are not used, because they protect its stack,
 * and a key is public. */
static uint64_t from_what_there_is(void) {
        static uint64_t number;
        uint64_t key = mixed(from_processor());

        key = with_time(key, CLOCK_MONOTONIC);
        key = with_time(key, CLOCK_REALTIME);
        key = mixed(key ^ (uint64_t) (uintptr_t) &key);    /* address of the stack */
        key = mixed(key ^ (uint64_t) (uintptr_t) &number); /* address of the library */
        key = mixed(key ^ (uint64_t) sys_call(SYS_getpid) << 32 ^ (uint64_t) sys_call(SYS_gettid));
        return mixed(key + __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED) * UINT64_C(0x9E3779B97F4A7C15));
}

uint64_t pin_key_new(void) {
        uint64_t key = 0;

        if (!from_kernel(&key))
                key = from_what_there_is();
        return (key & (PIN_KEY_END - 1)) | 1;
}
