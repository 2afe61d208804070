/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/launch_clock.h"

#include <linux/futex.h>
#include <time.h>

#include "base/sys.h"
#include "preload/inject/loaded.h"

enum { CLOCK_NONE = 1 };

typedef int ClockGettime(clockid_t clock, struct timespec *ret);

/* Returns the vDSO's function, which is much cheaper than a system call; CLOCK_NONE: there is
 * none. */
static uintptr_t find_clock(void) {
        uint64_t p = 0;
        ElfObject o;

        if (loaded_object("linux-vdso.so.1", &o)) {
                p = loaded_function(&o, "__vdso_clock_gettime");
                if (p == 0)
                        p = loaded_function(&o, "__kernel_clock_gettime");
        }
        return p != 0 ? (uintptr_t) p : CLOCK_NONE;
}

uint64_t launch_now(void) {
        static _Atomic uintptr_t known;
        uintptr_t p = atomic_load_explicit(&known, memory_order_relaxed);
        struct timespec t = {0, 0};

        if (p == 0) {
                p = find_clock();
                atomic_store_explicit(&known, p, memory_order_relaxed);
        }
        if (p == CLOCK_NONE || ((ClockGettime *) p)(CLOCK_MONOTONIC, &t) != 0)
                (void) sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, &t); /* cannot fail */
        return (uint64_t) t.tv_sec * UINT64_C(1000000000) + (uint64_t) t.tv_nsec;
}

static struct timespec timespec_of(uint64_t nsec) {
        return (struct timespec){.tv_sec = (time_t) (nsec / UINT64_C(1000000000)),
                                 .tv_nsec = (long) (nsec % UINT64_C(1000000000))};
}

void launch_sleep_on(const _Atomic uint32_t *at, uint32_t value, bool local, uint64_t nsec) {
        struct timespec t = timespec_of(nsec);

        (void) sys_call(SYS_futex, at, FUTEX_WAIT | (local ? FUTEX_PRIVATE_FLAG : 0), value, &t, 0, 0);
}

void launch_wake(const _Atomic uint32_t *at, bool local) {
        (void) sys_call(SYS_futex, at, FUTEX_WAKE | (local ? FUTEX_PRIVATE_FLAG : 0), INT32_MAX, 0, 0, 0);
}

void launch_sleep(uint64_t nsec) {
        struct timespec t = timespec_of(nsec);

        (void) sys_call(SYS_nanosleep, &t, 0);
}
