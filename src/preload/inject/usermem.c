/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/inject/usermem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "base/sys.h"
#include "preload/inject/bytes.h"
#include "preload/inject/spin.h"

enum {
        PAGE = 4096, /* the smallest there is */
        STACK_MAX = 8 * 1024 * 1024,
        BLOCK_ONE_SIGNAL = -1, /* no way to change a mask: the call reads its argument and then says EINVAL */
};

/* Where the main thread's stack ends; of the oldest symbol version there is. */
extern void *__libc_stack_end __attribute__((weak));

typedef enum Place { PLACE_ANY, PLACE_PERHAPS, PLACE_STACK } Place;

/* The main stack is one piece, with nothing of anybody else's for more than 100 MiB below it. A
 * thread's own data lies at the end of its stack when the libc has made that; but what is in
 * between is a stack only if we run on that one, and not on one that the program has made and keeps
 * below it, with its guard page. So it is tried before it is touched. */
static Place place_of(uint64_t address, size_t n) {
        uintptr_t frame = (uintptr_t) __builtin_frame_address(0), page = (frame | (PAGE - 1)) + 1;
        uintptr_t self = spin_self() - 1, last = &__libc_stack_end ? (uintptr_t) __libc_stack_end : 0;
        uintptr_t sure = last > page && last - frame < STACK_MAX ? last : page;

        if (address < frame || address + n < address)
                return PLACE_ANY;
        if (address + n <= sure)
                return PLACE_STACK;
        return address + n <= self && self - frame < STACK_MAX ? PLACE_PERHAPS : PLACE_ANY;
}

/* The kernel reads or writes 8 bytes there and does nothing else. Address 0 would tell it that
 * there is nothing to read. */
static int try_page(uint64_t address, int writing) {
        long r = address == 0 ? -EFAULT
                 : writing    ? sys_call(SYS_rt_sigprocmask, 0, 0, address, 8)
                              : sys_call(SYS_rt_sigprocmask, BLOCK_ONE_SIGNAL, address, 0, 8);

        return r == -EFAULT ? -EFAULT : 0;
}

/* Less than 8 bytes are only tried for reading: what lies beside them is not ours to touch. */
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

/* Who we are is asked each time: what was noted once is wrong in a child of clone() that shares
 * this memory, and may be the number of somebody else by now. Only EFAULT says something about the
 * address; anything else, that we must find out otherwise. */
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

/* Through a pipe of a moment, where the kernel may not copy between processes, not even within one:
 * it takes from the one side and gives to the other, and says EFAULT where it cannot. -ENOSYS:
 * there is no descriptor to be had, or not this either. */
static int pipe_copies(uint64_t to, uint64_t from, size_t n) {
        int ends[2] = {-1, -1};
        long r;

        if (n > PAGE || sys_call(SYS_pipe2, ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return -ENOSYS;
        r = sys_call(SYS_write, ends[1], from, n);
        if (r == (long) n)
                r = sys_call(SYS_read, ends[0], to, n);
        (void) sys_call(SYS_close, ends[0]); /* nothing is in it that anybody wants */
        (void) sys_call(SYS_close, ends[1]); /* as above */
        if (r == (long) n)
                return 0;
        return r == -EFAULT || r >= 0 ? -EFAULT : -ENOSYS;
}

/* 0: it can be copied here. 1: the kernel has copied it. -EFAULT. */
static int reach(uint64_t address, void *ours, size_t n, int writing) {
        Place place = place_of(address, n);
        uint64_t here = (uint64_t) (uintptr_t) ours;
        int r;

        if (place == PLACE_STACK)
                return 0;
        if (place == PLACE_PERHAPS && n >= 8)
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
        /* What follows the structure may be the end of what is mapped. */
        if (left < n && usermem_read(to, from, left) == 0)
                return left;
        return 0;
}
