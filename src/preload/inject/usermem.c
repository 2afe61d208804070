/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/inject/usermem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "base/sys.h"
#include "preload/inject/bytes.h"
#include "preload/inject/spin.h"

enum {
        PAGE = 4096, /* the smallest page of any kernel */
        STACK_MAX = 8 * 1024 * 1024,
        /* an invalid `how` of rt_sigprocmask(): the call reads its argument and then returns
         * EINVAL */
        HOW_INVALID = -1,
};

/* The end of the main stack; the symbol has the oldest version there is. */
extern void *__libc_stack_end __attribute__((weak));

typedef enum Region { REGION_UNKNOWN, REGION_MAYBE_STACK, REGION_STACK } Region;

/* The main stack is one mapping, with nothing else for more than 100 MiB below it. A thread's own
 * data lies at the end of its stack if libc has made that stack. The memory between frame and data
 * is stack only if the thread runs on it. The program may have made a stack of its own below it,
 * with a guard page in between, so that region is tried before it is touched. */
static Region region_of(uint64_t address, size_t n) {
        uintptr_t frame = (uintptr_t) __builtin_frame_address(0), page = (frame | (PAGE - 1)) + 1;
        uintptr_t self = spin_self() - 1, last = &__libc_stack_end ? (uintptr_t) __libc_stack_end : 0;
        uintptr_t sure = last > page && last - frame < STACK_MAX ? last : page;

        if (address < frame || address + n < address)
                return REGION_UNKNOWN;
        if (address + n <= sure)
                return REGION_STACK;
        return address + n <= self && self - frame < STACK_MAX ? REGION_MAYBE_STACK : REGION_UNKNOWN;
}

/* Whether the kernel can read, or write, 8 bytes at the address: 0 or -EFAULT. rt_sigprocmask(2)
 * without a new mask writes the present one there. With an invalid `how` it reads a new mask there
 * and changes nothing. Address 0 would mean that the argument is missing. */
static int try_page(uint64_t address, int writing) {
        long r = address == 0 ? -EFAULT
                 : writing    ? sys_call(SYS_rt_sigprocmask, 0, 0, address, 8)
                              : sys_call(SYS_rt_sigprocmask, HOW_INVALID, address, 0, 8);

        return r == -EFAULT ? -EFAULT : 0;
}

/* Fewer than 8 bytes are only tried for reading: the bytes beside them must not be written. */
static int try_pages(uint64_t address, size_t n, int writing) {
        uint64_t last = address + n - 1;
        int r = 0;

        if (last < address)
                return -EFAULT;
        if (n < 8)
                return try_page(address & ~UINT64_C(7), 0) | try_page(last & ~UINT64_C(7), 0);
        for (uint64_t page = address; r == 0 && page <= last; page = (page | (PAGE - 1)) + 1)
                r = try_page(page + 7 <= last ? page : last - 7, writing);
        return r;
}

/* The process's number is asked for each time: a remembered one is wrong in a child of clone() that
 * shares this memory, and may belong to another process by now. Only EFAULT says something about
 * the address; after any other error the caller tries another way. */
static int kernel_copies(long nr, void *ours, uint64_t theirs, size_t n) {
        struct iovec local = {.iov_base = ours, .iov_len = n}, remote;
        long r;

        remote.iov_base = (void *) (uintptr_t) theirs;
        remote.iov_len = n;
        r = sys_call(nr, sys_call(SYS_getpid), &local, 1, &remote, 1, 0);
        if (r == (long) n)
                return 0;
        return r >= 0 || r == -EFAULT ? -EFAULT : -ENOSYS;
}

/* Copies through a new pipe: the kernel reads the one address and writes the other, and answers
 * EFAULT if it cannot. -ENOSYS: no descriptor is left, or the pipe cannot be used either. */
static int pipe_copies(uint64_t to, uint64_t from, size_t n) {
        int ends[2] = {-1, -1};
        long r;

        if (n > PAGE || sys_call(SYS_pipe2, ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return -ENOSYS;
        r = sys_call(SYS_write, ends[1], from, n);
        if (r == (long) n)
                r = sys_call(SYS_read, ends[0], to, n);
        (void) sys_call(SYS_close, ends[0]); /* what is left in it is not needed */
        (void) sys_call(SYS_close, ends[1]); /* as above */
        if (r == (long) n)
                return 0;
        return r == -EFAULT || r >= 0 ? -EFAULT : -ENOSYS;
}

/* Tries the ways of usermem.h. Returns 0: the caller may copy; 1: the kernel has copied; or
 * -EFAULT. */
static int reach(uint64_t address, void *ours, size_t n, int writing) {
        Region region = region_of(address, n);
        uint64_t here = (uint64_t) (uintptr_t) ours;
        int r;

        if (region == REGION_STACK)
                return 0;
        if (region == REGION_MAYBE_STACK && n >= 8)
                return try_pages(address, n, writing);
        r = kernel_copies(writing ? SYS_process_vm_writev : SYS_process_vm_readv, ours, address, n);
        if (r == -ENOSYS)
                r = pipe_copies(writing ? address : here, writing ? here : address, n);
        if (r == -ENOSYS)
                return try_pages(address, n, writing);
        return r == 0 ? 1 : r;
}

int usermem_read(void *to, uint64_t from, size_t n) {
        int r = reach(from, to, n, 0);

        if (r == 0)
                bytes_copy(to, (const void *) (uintptr_t) from, n);
        return r < 0 ? r : 0;
}

int usermem_write(uint64_t to, const void *from, size_t n) {
        union {
                const void *from;
                void *to;
        } ours = {.from = from}; /* it is only read from */
        int r = reach(to, ours.to, n, 1);

        if (r == 0)
                bytes_copy((void *) (uintptr_t) to, from, n);
        return r < 0 ? r : 0;
}

size_t usermem_read_some(void *to, uint64_t from, size_t n) {
        size_t left = PAGE - (size_t) (from & (PAGE - 1));

        if (usermem_read(to, from, n) == 0)
                return n;
        bytes_clear(to, n);
        /* Reads to the end of the page: the mapping may end there. */
        if (left < n && usermem_read(to, from, left) == 0)
                return left;
        return 0;
}
