/* SPDX-License-Identifier: Apache-2.0 */

/* An interposer before libaliquot.so, in LD_PRELOAD or linked in. With MAPS it maps by system calls
 * of its own, as tcmalloc does; with IOCTL it also makes ioctl() so, as libv4l does. With PASSES it
 * passes all calls on, as a sanitizer's runtime does. At the end it reports whether it saw the
 * calls that it would see without the gate, the driver's mappings included. It finds the next
 * function by RTLD_NEXT, or by a handle of the C library (BY_HANDLE). */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef BY_HANDLE
#define NEXT(name) dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), name)
#else
#define NEXT(name) dlsym(RTLD_NEXT, name)
#endif

#ifdef PASSES
#define CALL(type, name, number, ...)                                                                        \
        static type (*real)() = NULL;                                                                        \
        if (!real)                                                                                           \
                real = NEXT(name);                                                                           \
        return real(__VA_ARGS__)
#else
#define CALL(type, name, number, ...) return (type) syscall(number, __VA_ARGS__)
#endif

static int driver_mappings;

__attribute__((destructor)) static void say(void) {
        if (getenv("FRONT_SAYS"))
                printf("seen %d\n", driver_mappings);
}

#if defined(MAPS) || defined(PASSES)
void *mmap(void *a, size_t n, int protection, int flags, int fd, off_t offset) {
        driver_mappings += fd >= 0 && (off_t) a == offset && offset != 0;
        CALL(void *, "mmap", SYS_mmap, a, n, protection, flags, fd, offset);
}

void *mmap64(void *a, size_t n, int protection, int flags, int fd, off_t offset) {
        driver_mappings += fd >= 0 && (off_t) a == offset && offset != 0;
        CALL(void *, "mmap64", SYS_mmap, a, n, protection, flags, fd, offset);
}

int munmap(void *a, size_t n) {
        CALL(int, "munmap", SYS_munmap, a, n);
}

void *mremap(void *a, size_t old, size_t n, int flags, ...) {
        va_list more;
        void *to;
        va_start(more, flags);
        to = va_arg(more, void *);
        va_end(more);
        CALL(void *, "mremap", SYS_mremap, a, old, n, flags, to);
}
#endif

#if defined(IOCTL) || defined(PASSES)
int ioctl(int fd, unsigned long request, ...) {
        va_list more;
        void *p;
        va_start(more, request);
        p = va_arg(more, void *);
        va_end(more);
        CALL(int, "ioctl", SYS_ioctl, fd, request, p);
}
#endif

#ifdef LAUNCHES /* a profiler */
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
        int (*next)() = dlsym(RTLD_NEXT, "cuLaunchKernel");

        printf("launch ");
        return next(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
#endif
