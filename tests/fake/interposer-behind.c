/* SPDX-License-Identifier: Apache-2.0 */

/* Another interposer before libc, which counts calls. It finds the next function by RTLD_NEXT, or
 * by a handle of the C library (BY_HANDLE), which gives the one before that. With GUARD it makes
 * another call for each call that came. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/types.h>

int seen[4], jump;
jmp_buf back;

#ifdef BY_HANDLE
#define REAL(name) dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), name)
#else
#define REAL(name) dlsym(RTLD_NEXT, name)
#endif

void *mmap(void *a, size_t n, int protection, int flags, int fd, off_t offset) {
        static void *(*real)(void *, size_t, int, int, int, off_t);
        if (!real)
                real = REAL("mmap");
        seen[0]++;
#ifdef GUARD /* another call than the one that came in */
        n += 4096;
#endif
        return real(a, n, protection, flags, fd, offset);
}

int munmap(void *a, size_t n) {
        static int (*real)(void *, size_t);
        if (!real)
                real = REAL("munmap");
        seen[1]++;
        if (jump)
                longjmp(back, 1);
        return real(a, n);
}

void *mremap(void *a, size_t old, size_t n, int flags, ...) {
        static void *(*real)(void *, size_t, size_t, int, ...);
        va_list more;
        void *to;
        va_start(more, flags);
        to = va_arg(more, void *);
        va_end(more);
        if (!real)
                real = REAL("mremap");
        seen[2]++;
        return real(a, old, n, flags, to);
}

int ioctl(int fd, unsigned long request, ...) {
        static int (*real)(int, unsigned long, ...);
        va_list more;
        void *p;
        va_start(more, request);
        p = va_arg(more, void *);
        va_end(more);
        if (!real)
                real = REAL("ioctl");
        seen[3]++;
        return real(fd, request, p);
}
