/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/hook.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "gpu/rm/uvm_ioctl.h"
#include "preload/inject/next.h"
#include "preload/inject/slots.h"
#include "preload/inject/usermem.h"
#include "preload/memory/driver_fd.h"
#include "preload/memory/gate_state.h"
#include "preload/memory/managed.h"
#include "preload/memory/rm_call.h"
#include "preload/memory/uvm_external.h"

/* The functions that this library interposes. In a process that never calls the driver they cost a
 * few instructions, and then make the system call or call the next library that interposes them
 * (next.h).
 *
 * The functions are named by assembler labels, so that they do not depend on the declarations and
 * large-file macros of libc's headers. */
#define EXPORTED(name) __asm__(name) __attribute__((visibility("default")))

extern int *__errno_location(void) __attribute__((weak));

int aliquot_ioctl(int fd, unsigned long request, ...) EXPORTED("ioctl");
void *aliquot_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
        EXPORTED("mmap");
void *aliquot_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
        EXPORTED("mmap64");
int aliquot_munmap(void *address, size_t length) EXPORTED("munmap");
void *aliquot_mremap(void *address, size_t old, size_t length, int flags, ...) EXPORTED("mremap");

static const uintptr_t ours[SLOT_NAMES] = {
        [SLOT_IOCTL] = (uintptr_t) aliquot_ioctl,   [SLOT_MMAP] = (uintptr_t) aliquot_mmap,
        [SLOT_MMAP64] = (uintptr_t) aliquot_mmap64, [SLOT_MUNMAP] = (uintptr_t) aliquot_munmap,
        [SLOT_MREMAP] = (uintptr_t) aliquot_mremap,
};

/* 1: this process may have a uvm file. A uvm file can be mapped only after it was initialized, by
 * this program or by the one that passed it on. */
static _Atomic int uvm_seen;

static long with_errno(long r) {
        if (r >= 0 || r < -4095)
                return r;
        if (&__errno_location)
                *__errno_location() = (int) -r;
        return -1;
}

/* ---- libraries before this one ---- */

bool hook_redirect_driver(void) {
        return !slots_needed() || !gate_get() || slots_redirect_library(ours, "libcuda.so.1");
}

/* Redirects the object that initializes uvm and maps memory of it: libcuda, or another library of
 * the driver. This is repeated when it registers a card: another thread's first call may have been
 * on its way through the old slot. */
static bool redirect_caller(const Gate *g, uintptr_t caller) {
        if (slots_redirect_caller(ours, caller))
                return true;
        gate_log(g, "refused: managed memory, with an allocator in front", 0, 0);
        return false;
}

/* ---- ioctl ---- */

/* Makes the call, and then looks up mappings of uvm: it may have mapped a new object before the
 * gate knew it. */
static long rm_call(Gate *g, int fd, unsigned long request, uint64_t argument, uint32_t nr, uint32_t size) {
        uint32_t since = uvm_maps_now(&g->maps);
        long r = gate_call(g, fd, request, argument, nr, size);

        uvm_maps_recheck(&g->maps, &g->objects, since);
        return r;
}

/* Handles a metered call. XFER_CMD has the number, the size and the pointer of a call in memory. */
static long metered_ioctl(int fd, unsigned long request, uint64_t argument) {
        uint32_t nr = rm_ioctl_nr(request), size = rm_ioctl_size(request);
        Gate *g = gate_get_for(fd);
        RmXfer xfer;

        if (!g)
                return GATE_NOT_OURS;
        if (nr != RM_ESC_XFER_CMD)
                return rm_call(g, fd, request, argument, nr, size);
        if (usermem_read(&xfer, argument, sizeof xfer) < 0)
                return gate_file(g, fd) == GATE_FILE_RM ? -EFAULT : GATE_NOT_OURS;
        if (rm_is_odd(xfer.cmd, xfer.size) && gate_file(g, fd) == GATE_FILE_RM)
                return -EINVAL;
        if (!rm_metered(xfer.cmd, xfer.size) && !rm_is_dma_buf(xfer.cmd, xfer.size))
                return gate_file(g, fd) == GATE_FILE_RM ? gate_next_ioctl(fd, request, &xfer) : GATE_NOT_OURS;
        return rm_call(g, fd, RM_IOCTL(xfer.cmd, xfer.size), xfer.ptr, xfer.cmd, xfer.size);
}

/* Refuses a call with a size that is not known. Terminals have calls with such numbers, too, so the
 * file is checked first: a program must not load the gate by asking whether it has a terminal. */
static long odd_ioctl(int fd, unsigned long request) {
        const Gate *g = gate_get_for_driver(fd);

        if (!g)
                return GATE_NOT_OURS;
        gate_log(g, "refused: a call of a size that is not known", rm_ioctl_nr(request),
                 rm_ioctl_size(request));
        return -EINVAL;
}

static long handle_registration(int fd, unsigned long request, uint64_t argument, uintptr_t caller) {
        Gate *g = atomic_load_explicit(&uvm_seen, memory_order_relaxed) ? gate_get() : NULL;

        if (!g || !gate_is_uvm(g, fd))
                return GATE_NOT_OURS;
        if (!redirect_caller(g, caller))
                return -ENOMEM;
        return gate_uvm_register(g, fd, request, argument);
}

static long handle_initialization(int fd, unsigned long request, uint64_t argument, uintptr_t caller) {
        Gate *g;

        atomic_store_explicit(&uvm_seen, 1, memory_order_relaxed);
        g = gate_get();
        if (!g)
                return GATE_NOT_OURS;
        if (!redirect_caller(g, caller))
                return -ENOMEM;
        return gate_uvm_initialize(g, fd, request, argument);
}

/* Makes a call about memory objects. The file may have been initialized before this process got it;
 * its cards are followed from here on. */
static long handle_external(int fd, uint32_t request, uint64_t argument) {
        Gate *g = gate_get();

        if (!g || !gate_is_uvm(g, fd))
                return GATE_NOT_OURS;
        atomic_store_explicit(&uvm_seen, 1, memory_order_relaxed);
        return uvm_external_call(g, fd, request, argument);
}

static long hook_ioctl(int fd, unsigned long request, uint64_t argument, uintptr_t caller) {
        uint32_t nr = rm_ioctl_nr(request), size = rm_ioctl_size(request);
        long r = GATE_NOT_OURS;

        if (slots_is_probe(SLOT_IOCTL) || next_is_reentry(NEXT_IOCTL, fd, (long) request, (long) argument))
                return sys_call(SYS_ioctl, fd, request, argument);
        /* uvm's requests are plain numbers, of which the kernel takes 32 bits */
        if ((uint32_t) request == UVM_INITIALIZE_CMD)
                r = handle_initialization(fd, request, argument, caller);
        else if ((uint32_t) request == UVM_REGISTER_GPU_CMD || (uint32_t) request == UVM_UNREGISTER_GPU_CMD)
                r = handle_registration(fd, (uint32_t) request, argument, caller);
        else if (uvm_external_follows((uint32_t) request))
                r = handle_external(fd, (uint32_t) request, argument);
        else if (rm_metered(nr, size) || rm_is_dma_buf(nr, size) ||
                 (nr == RM_ESC_XFER_CMD && size == sizeof(RmXfer)))
                r = metered_ioctl(fd, request, argument);
        else if (rm_is_odd(nr, size))
                r = odd_ioctl(fd, request);
        return r == GATE_NOT_OURS ? next_ioctl(fd, request, (void *) (uintptr_t) argument) : r;
}

/* The third argument is a pointer, a number, or missing: then the value that is read is not
 * used. */
int aliquot_ioctl(int fd, unsigned long request, ...) {
        void *argument;
        va_list more;

        va_start(more, request);
        argument = va_arg(more, void *);
        va_end(more);
        return (int) with_errno(hook_ioctl(fd, request, (uint64_t) (uintptr_t) argument,
                                           (uintptr_t) __builtin_return_address(0)));
}

/* ---- mmap ---- */

static Gate *gate_of_mappings(int fd) {
        return atomic_load_explicit(&uvm_seen, memory_order_relaxed) ? gate_get_for_mapping(fd) : NULL;
}

/* Whether it may be a uvm file that was initialized before this process got it, by exec or a
 * socket. The driver maps a uvm file only at the address that is its offset, which is rare for
 * other files. */
static bool may_be_inherited_uvm(const void *address, int flags, int fd, off_t offset) {
        return offset != 0 && (uint64_t) offset == (uint64_t) (uintptr_t) address && fd >= 0 &&
               (flags & MAP_SHARED) && !(flags & MAP_ANONYMOUS) &&
               !atomic_load_explicit(&uvm_seen, memory_order_relaxed);
}

static void check_inherited_uvm(int fd) {
        const Gate *g = gate_get();

        if (g && gate_is_uvm(g, fd))
                atomic_store_explicit(&uvm_seen, 1, memory_order_relaxed);
}

static long hook_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        uint32_t now;
        Gate *g;
        long r;

        if (slots_is_probe(SLOT_MMAP) || next_is_reentry(NEXT_MMAP, (long) length, fd, offset))
                return sys_call(SYS_mmap, address, length, protection, flags, fd, offset);
        if (may_be_inherited_uvm(address, flags, fd, offset))
                check_inherited_uvm(fd);
        g = gate_of_mappings(flags & MAP_ANONYMOUS ? -1 : fd);
        if (!g)
                return next_mmap(address, length, protection, flags, fd, offset);
        /* With any protection: the gate does not see mprotect(), and the driver accepts only
         * mappings that can be read and written. */
        if (fd >= 0 && !(flags & MAP_ANONYMOUS) && gate_is_uvm(g, fd)) {
                r = uvm_external_mmap(g, address, length, protection, flags, fd, offset);
                return r != GATE_NOT_OURS
                               ? r
                               : gate_map_managed(g, address, length, protection, flags, fd, offset);
        }
        now = uvm_now(&g->uvm);
        r = next_mmap(address, length, protection, flags, fd, offset);
        if ((flags & MAP_FIXED) && !gate_failed(r))
                gate_unmap_managed(g, (uint64_t) r, (uint64_t) r + gate_page_up(length), now);
        return r;
}

void *aliquot_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        return (void *) with_errno(hook_mmap(address, length, protection, flags, fd, offset));
}

void *aliquot_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        return (void *) with_errno(hook_mmap(address, length, protection, flags, fd, offset));
}

/* Releases bytes after the pages are gone, and only those that were counted before the call:
 * another thread may map the same addresses meanwhile. */
static long hook_munmap(void *address, size_t length) {
        uint64_t start = (uint64_t) (uintptr_t) address;
        uint32_t now;
        Gate *g;
        long r;

        if (slots_is_probe(SLOT_MUNMAP) || next_is_reentry(NEXT_MUNMAP, (long) address, (long) length, 0))
                return sys_call(SYS_munmap, address, length);
        g = gate_of_mappings(-1);
        now = g ? uvm_now(&g->uvm) : 0;
        r = next_munmap(address, length);
        if (g && r == 0)
                gate_unmap_managed(g, start, start + gate_page_up(length), now);
        return r;
}

int aliquot_munmap(void *address, size_t length) {
        return (int) with_errno(hook_munmap(address, length));
}

/* A mapping of uvm may shrink and move; the kernel does not let it grow. */
static long hook_mremap(void *address, size_t old, size_t length, int flags, void *to) {
        uint32_t now;
        Gate *g;
        long r;

        if (slots_is_probe(SLOT_MREMAP) ||
            next_is_reentry(NEXT_MREMAP, (long) address, (long) old, (long) length))
                return sys_call(SYS_mremap, address, old, length, flags, to);
        g = gate_of_mappings(-1);
        now = g ? uvm_now(&g->uvm) : 0;
        r = next_mremap(address, old, length, flags, to);
        if (g && !gate_failed(r))
                r = gate_remap_managed(g, (uint64_t) (uintptr_t) address, gate_page_up(old), (uint64_t) r,
                                       gate_page_up(length), now);
        return r;
}

/* The last argument exists with MREMAP_FIXED only. */
void *aliquot_mremap(void *address, size_t old, size_t length, int flags, ...) {
        va_list more;
        void *to;

        va_start(more, flags);
        to = va_arg(more, void *);
        va_end(more);
        return (void *) with_errno(hook_mremap(address, old, length, flags, to));
}
