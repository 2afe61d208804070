/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/inject/next.h"

#include <errno.h>
#include <stdatomic.h>

#include "preload/inject/loaded.h"
#include "preload/inject/spin.h"

enum {
        UNKNOWN = 0, /* not looked up yet */
        KERNEL = 1,  /* no other library defines the name */
        PASSES = 64, /* calls that can be passed on at once; more go to the kernel */
};

typedef int Ioctl(int fd, unsigned long request, ...);
typedef void *Mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
typedef int Munmap(void *address, size_t length);
typedef void *Mremap(void *address, size_t old, size_t length, int flags, ...);

extern int *__errno_location(void) __attribute__((weak));

/* ---- the next library ---- */

static _Atomic uintptr_t known[NEXT_NAMES];
static _Atomic int any_found;

static uintptr_t look_up(NextName name) {
        static const char *const names[NEXT_NAMES][2] = {
                {"ioctl", "ioctl"}, {"mmap", "mmap64"}, {"munmap", "munmap"}, {"mremap", "mremap"}};
        uintptr_t p = KERNEL;

        if (!loaded_is_ready())
                return KERNEL; /* not stored in known[], so the next call looks again */
        for (unsigned i = 0; i < 2 && p == KERNEL; i++) {
                uint64_t found = loaded_before_libc(names[name][i]);

                p = found != 0 ? (uintptr_t) found : KERNEL;
        }
        if (p != KERNEL)
                atomic_store_explicit(&any_found, 1, memory_order_relaxed);
        atomic_store_explicit(&known[name], p, memory_order_release); /* after any_found */
        return p;
}

/* Returns the next library's function; 0: the call goes to the kernel. */
static uintptr_t find_function(NextName name) {
        uintptr_t p = atomic_load_explicit(&known[name], memory_order_acquire);

        if (p == UNKNOWN)
                p = look_up(name);
        return p == KERNEL ? 0 : p;
}

/* ---- calls that are being passed on ---- */

typedef struct Pass {
        _Atomic uintptr_t thread;      /* 0: free */
        _Atomic uintptr_t frame, call; /* read by that thread only */
} Pass;

static Pass passes[PASSES];

static uintptr_t call_of(NextName name, long a, long b, long c) {
        uintptr_t h = (uintptr_t) name + 1;

        h = (h ^ (uintptr_t) a) * UINT64_C(0x9E3779B97F4A7C15);
        h = (h ^ h >> 29 ^ (uintptr_t) b) * UINT64_C(0x9E3779B97F4A7C15);
        return (h ^ h >> 31 ^ (uintptr_t) c) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Returns the thread's entry in passes[]. If the current frame is above it on the stack, the call
 * was left by longjmp(), and the entry is cleared. */
static Pass *pass_of(uintptr_t thread, uintptr_t frame) {
        for (unsigned i = 0; i < PASSES; i++) {
                if (atomic_load_explicit(&passes[i].thread, memory_order_relaxed) != thread)
                        continue;
                if (frame < atomic_load_explicit(&passes[i].frame, memory_order_relaxed))
                        return &passes[i];
                atomic_store_explicit(&passes[i].thread, 0, memory_order_relaxed);
        }
        return NULL;
}

bool next_is_reentry(NextName name, long a, long b, long c) {
        const Pass *pass;

        if (!atomic_load_explicit(&any_found, memory_order_relaxed))
                return false;
        pass = pass_of(spin_self(), (uintptr_t) __builtin_frame_address(0));
        return pass && atomic_load_explicit(&pass->call, memory_order_relaxed) == call_of(name, a, b, c);
}

/* Takes an entry in passes[]. NULL: the thread is passing on another call, or all are taken. */
static Pass *enter_pass(uintptr_t frame, uintptr_t call) {
        uintptr_t thread = spin_self();

        if (pass_of(thread, frame))
                return NULL;
        for (unsigned i = 0; i < PASSES; i++) {
                uintptr_t none = 0;

                if (!atomic_compare_exchange_strong_explicit(&passes[i].thread, &none, thread,
                                                             memory_order_relaxed, memory_order_relaxed))
                        continue;
                atomic_store_explicit(&passes[i].call, call, memory_order_relaxed);
                atomic_store_explicit(&passes[i].frame, frame, memory_order_relaxed);
                return &passes[i];
        }
        return NULL;
}

/* Frees the entry, unless a signal handler on another stack has cleared it as left. */
static void leave_pass(Pass *pass, uintptr_t frame) {
        if (atomic_load_explicit(&pass->thread, memory_order_relaxed) == spin_self() &&
            atomic_load_explicit(&pass->frame, memory_order_relaxed) == frame)
                atomic_store_explicit(&pass->thread, 0, memory_order_relaxed);
}

/* ---- the calls ---- */

static long with_sign(long r) {
        int e = &__errno_location ? *__errno_location() : EINVAL;

        return r != -1 ? r : e > 0 ? -e : -EINVAL;
}

#define FRAME ((uintptr_t) __builtin_frame_address(0))

long next_ioctl(int fd, unsigned long request, void *argument) {
        Ioctl *f = (Ioctl *) find_function(NEXT_IOCTL);
        Pass *pass = f ? enter_pass(FRAME, call_of(NEXT_IOCTL, fd, (long) request, (long) argument)) : NULL;
        long r;

        if (!pass)
                return sys_call(SYS_ioctl, fd, request, argument);
        r = with_sign(f(fd, request, argument));
        leave_pass(pass, FRAME);
        return r;
}

long next_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        Mmap *f = (Mmap *) find_function(NEXT_MMAP);
        Pass *pass = f ? enter_pass(FRAME, call_of(NEXT_MMAP, (long) length, fd, offset)) : NULL;
        long r;

        if (!pass)
                return sys_call(SYS_mmap, address, length, protection, flags, fd, offset);
        r = with_sign((long) f(address, length, protection, flags, fd, offset));
        leave_pass(pass, FRAME);
        return r;
}

long next_munmap(void *address, size_t length) {
        Munmap *f = (Munmap *) find_function(NEXT_MUNMAP);
        Pass *pass = f ? enter_pass(FRAME, call_of(NEXT_MUNMAP, (long) address, (long) length, 0)) : NULL;
        long r;

        if (!pass)
                return sys_call(SYS_munmap, address, length);
        r = with_sign(f(address, length));
        leave_pass(pass, FRAME);
        return r;
}

long next_mremap(void *address, size_t old, size_t length, int flags, void *to) {
        Mremap *f = (Mremap *) find_function(NEXT_MREMAP);
        Pass *pass =
                f ? enter_pass(FRAME, call_of(NEXT_MREMAP, (long) address, (long) old, (long) length)) : NULL;
        long r;

        if (!pass)
                return sys_call(SYS_mremap, address, old, length, flags, to);
        r = with_sign((long) f(address, old, length, flags, to));
        leave_pass(pass, FRAME);
        return r;
}
