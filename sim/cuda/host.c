/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/host.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "sim/cuda/api_memory.h"
#include "sim/cuda/stream.h"

enum { PAGE = 4096 };

static size_t whole_pages(size_t size) {
        return (size + PAGE - 1) / PAGE * PAGE;
}

void host_free(Range *r) {
        if (r->object != 0)
                (void) driver_free(&state.driver, r->object);
        if (r->kind != RANGE_REGISTERED)
                address_drop(r->start, whole_pages(r->size));
        range_remove(r);
}

/* ---- pinned ---- */

/* The driver pins the pages. A driver without that call counts nothing either. */
static uint32_t pin(const Device *d, size_t size) {
        RmMemoryParams m = {.owner = state.driver.client, .size = size};
        uint32_t object = 0;

        (void) driver_alloc(&state.driver, d->card->device, RM_CLASS_MEMORY_SYSTEM, &m, &object);
        return object;
}

static CUresult host_alloc(void **ret, size_t size, unsigned flags) {
        Range range = {.kind = RANGE_HOST, .size = size, .flags = flags | CU_MEMHOSTALLOC_DEVICEMAP};
        CUcontext c;
        CUresult r = context_enter(&c);
        void *p;

        if (r == CUDA_SUCCESS)
                r = capture_refuse(c);
        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || size == 0 || size > SIZE_MAX - PAGE)
                return CUDA_ERROR_INVALID_VALUE;
        p = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                return CUDA_ERROR_OUT_OF_MEMORY;
        range.start = (CUdeviceptr) (uintptr_t) p;
        range.context = c;
        range.device = c->device;
        range.object = pin(c->device, whole_pages(size));
        if (!range_add(&range)) {
                address_drop(range.start, whole_pages(size));
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *ret = p;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemHostAlloc(void **ret, size_t size, unsigned flags) {
        LOCKED;

        return host_alloc(ret, size, flags);
}

/* The range of a host pointer of this kind, in *ret. */
static CUresult find_host(const void *p, RangeKind kind, Range **ret) {
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r != CUDA_SUCCESS)
                return r;
        *ret = range_find((CUdeviceptr) (uintptr_t) p);
        if (!*ret || (*ret)->kind != kind || (*ret)->start != (CUdeviceptr) (uintptr_t) p)
                return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemFreeHost(void *p) {
        LOCKED;
        Range *range;
        CUresult r = find_host(p, RANGE_HOST, &range);

        if (r != CUDA_SUCCESS)
                return r;
        r = context_wait(range->context);
        range = range_find((CUdeviceptr) (uintptr_t) p);
        if (!range)
                return CUDA_ERROR_INVALID_VALUE;
        host_free(range);
        return r;
}

CUDA_API CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned flags) {
        LOCKED;
        Range range = {.kind = RANGE_REGISTERED, .start = (CUdeviceptr) (uintptr_t) p, .size = size};
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r != CUDA_SUCCESS)
                return r;
        if (!p || size == 0)
                return CUDA_ERROR_INVALID_VALUE;
        range.flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
        range.context = c;
        range.device = c->device;
        return range_add(&range) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUDA_API CUresult cuMemHostUnregister(void *p) {
        LOCKED;
        Range *range;
        CUresult r = find_host(p, RANGE_REGISTERED, &range);

        if (r != CUDA_SUCCESS)
                return r == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : r;
        host_free(range);
        return CUDA_SUCCESS;
}

/* ---- managed ---- */

/* A file system in user space may not support shared mappings. Tested once, by a raw call: it is no
 * memory yet. */
static int sharing(void) {
        static int flag;
        long p;

        if (flag != 0)
                return flag;
        p = syscall(SYS_mmap, NULL, (size_t) PAGE, PROT_NONE, MAP_SHARED, state.uvm, 0L);
        flag = p == -1 ? MAP_PRIVATE : MAP_SHARED;
        if (p != -1)
                (void) syscall(SYS_munmap, p, (size_t) PAGE);
        return flag;
}

/* Maps the file at the address that is its offset, as the real libcuda does. */
static bool announce(CUdeviceptr at, size_t size) {
        void *p = mmap((void *) (uintptr_t) at, size, PROT_READ | PROT_WRITE, sharing() | MAP_FIXED,
                       state.uvm, (off_t) at);

        return p != MAP_FAILED;
}

/* Not by libc's mmap: an interposed library would take it for the end of the mapping before. */
static bool put_memory(CUdeviceptr at, size_t size) {
        long r = syscall(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0L);

        return r != -1;
}

CUDA_API CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t size, unsigned flags) {
        LOCKED;
        Range range = {.kind = RANGE_MANAGED, .size = size, .flags = flags};
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = capture_refuse(c);
        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || size == 0 || size > SIZE_MAX - GRANULE ||
            (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
                return CUDA_ERROR_INVALID_VALUE;
        if (state.uvm < 0)
                return CUDA_ERROR_NOT_SUPPORTED;
        range.start = address_take(whole_pages(size), GRANULE, 0);
        range.context = c;
        range.device = c->device;
        if (range.start == 0)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (!announce(range.start, whole_pages(size)) || !put_memory(range.start, whole_pages(size)) ||
            !range_add(&range)) {
                address_drop(range.start, whole_pages(size));
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *ret = range.start;
        return CUDA_SUCCESS;
}
