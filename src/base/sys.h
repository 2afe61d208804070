/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Raw system calls, for code inside a process that is not ours. They use no symbol that the process
 * or another library may interpose, set no errno and touch no libc state. Each returns what the
 * kernel returns: a negative errno on failure. */

#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)

static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f) {
        register long r10 __asm__("r10") = d;
        register long r8 __asm__("r8") = e;
        register long r9 __asm__("r9") = f;
        long ret;

        __asm__ volatile("syscall"
                         : "=a"(ret)
                         : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                         : "rcx", "r11", "memory");
        return ret;
}

#elif defined(__aarch64__)

static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f) {
        register long x8 __asm__("x8") = nr;
        register long x0 __asm__("x0") = a;
        register long x1 __asm__("x1") = b;
        register long x2 __asm__("x2") = c;
        register long x3 __asm__("x3") = d;
        register long x4 __asm__("x4") = e;
        register long x5 __asm__("x5") = f;

        __asm__ volatile("svc 0"
                         : "+r"(x0)
                         : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                         : "memory", "cc");
        return x0;
}

#else
#error "system calls of this machine are not known here: add them"
#endif

/* sys_call(SYS_name, up to six arguments) */
#define sys_call(...) SYS_CALL_TAKE(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define SYS_CALL_TAKE(nr, a, b, c, d, e, f, ...)                                                             \
        sys_call6((nr), (long) (a), (long) (b), (long) (c), (long) (d), (long) (e), (long) (f))
