/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "sim/cuda/api_memory.h"
#include "sim/cuda/share.h"

/* Virtual memory management: addresses, memory, and the mapping of one to the other, with
 * independent lives. A handle is a Physical; its memory is freed when the handle is released and
 * the last mapping is gone. */

typedef struct Physical {
        struct Physical *next;
        bool held; /* until cuMemRelease() */
        Block *block;
} Physical;

typedef struct Reservation {
        struct Reservation *next;
        CUdeviceptr start;
        size_t size;
} Reservation;

static Physical *physicals;
static Reservation *reservations;

static CUresult find_physical(CUmemGenericAllocationHandle handle, Physical **ret) {
        for (Physical *p = physicals; p; p = p->next)
                if ((CUmemGenericAllocationHandle) (uintptr_t) p == handle && p->held) {
                        *ret = p;
                        return CUDA_SUCCESS;
                }
        return CUDA_ERROR_INVALID_VALUE;
}

static Reservation *find_reservation(CUdeviceptr at, size_t size) {
        for (Reservation *r = reservations; r; r = r->next)
                if (at >= r->start && at - r->start < r->size && size <= r->size - (at - r->start))
                        return r;
        return NULL;
}

static bool is_mapped(const Block *b, CUdeviceptr at, size_t size) {
        for (CUdeviceptr p = at; p < at + size;) {
                const Range *r = range_find(p);

                if (!r) {
                        p += GRANULE;
                        continue;
                }
                if (!b || r->block == b)
                        return true;
                p = r->start + r->size;
        }
        return false;
}

/* ---- addresses ---- */

CUDA_API CUresult cuMemAddressReserve(CUdeviceptr *ret, size_t size, size_t alignment, CUdeviceptr wish,
                                      unsigned long long flags) {
        LOCKED;
        CUresult r = state_check();
        Reservation *v;

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || size == 0 || size % GRANULE != 0 || flags != 0 || (alignment & (alignment - 1)) != 0)
                return CUDA_ERROR_INVALID_VALUE;
        v = calloc(1, sizeof *v);
        if (!v)
                return CUDA_ERROR_OUT_OF_MEMORY;
        v->size = size;
        v->start = address_take(size, alignment > GRANULE ? alignment : GRANULE, wish);
        if (v->start == 0) {
                free(v);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        v->next = reservations;
        reservations = v;
        *ret = v->start;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemAddressFree(CUdeviceptr at, size_t size) {
        LOCKED;
        CUresult r = state_check();

        if (r != CUDA_SUCCESS)
                return r;
        for (Reservation **link = &reservations; *link; link = &(*link)->next) {
                Reservation *v = *link;

                if (v->start != at || v->size != size)
                        continue;
                if (is_mapped(NULL, at, size))
                        return CUDA_ERROR_INVALID_VALUE;
                *link = v->next;
                address_drop(at, size);
                free(v);
                return CUDA_SUCCESS;
        }
        return CUDA_ERROR_INVALID_VALUE;
}

/* ---- memory ---- */

CUresult memory_location(const CUmemLocation *location, bool *ret_host, Device **ret) {
        *ret_host = location->type >= CU_MEM_LOCATION_TYPE_HOST &&
                    location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
        if (!*ret_host && location->type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        if (location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location->id < 0)
                return CUDA_ERROR_INVALID_VALUE;
        return state_device(*ret_host ? 0 : location->id, ret);
}

static CUresult check_prop(const CUmemAllocationProp *prop, bool *ret_host, Device **ret) {
        if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
                return CUDA_ERROR_INVALID_VALUE;
        if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                return CUDA_ERROR_NOT_SUPPORTED;
        return memory_location(&prop->location, ret_host, ret);
}

static CUresult add_physical(Block *b, CUmemGenericAllocationHandle *ret) {
        Physical *p = calloc(1, sizeof *p);

        if (!p) {
                block_drop(b);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *p = (Physical){.next = physicals, .held = true, .block = b};
        physicals = p;
        *ret = (CUmemGenericAllocationHandle) (uintptr_t) p;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t size, const CUmemAllocationProp *prop,
                              unsigned long long flags) {
        LOCKED;
        CUresult r = state_check();
        bool host;
        Device *d;
        Block *b;

        if (r == CUDA_SUCCESS)
                r = check_prop(prop, &host, &d);
        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || size == 0 || size % GRANULE != 0 || flags != 0)
                return CUDA_ERROR_INVALID_VALUE;
        r = host ? block_new_host(d, size, prop->requestedHandleTypes != 0, &b)
                 : block_new(d, size, prop->requestedHandleTypes != 0, &b);
        return r == CUDA_SUCCESS ? add_physical(b, ret) : r;
}

/* Frees it when its handle is released and no memory is mapped by it. */
static void sweep(Physical *p) {
        if (p->held || p->block->users > 1)
                return;
        for (Physical **link = &physicals; *link; link = &(*link)->next)
                if (*link == p) {
                        *link = p->next;
                        break;
                }
        block_drop(p->block);
        free(p);
}

CUDA_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
        LOCKED;
        Physical *p;
        CUresult r = state_check();

        if (r == CUDA_SUCCESS)
                r = find_physical(handle, &p);
        if (r != CUDA_SUCCESS)
                return r;
        p->held = false;
        sweep(p);
        return CUDA_SUCCESS;
}

/* ---- mappings ---- */

CUDA_API CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                           unsigned long long flags) {
        LOCKED;
        Range range = {.kind = RANGE_MAPPED, .start = at, .size = size};
        Physical *p;
        CUresult r = state_check();

        if (r == CUDA_SUCCESS)
                r = find_physical(handle, &p);
        if (r != CUDA_SUCCESS)
                return r;
        if (flags != 0 || size == 0 || at % GRANULE != 0 || size % GRANULE != 0 || offset % GRANULE != 0 ||
            offset > p->block->size || size > p->block->size - offset || !find_reservation(at, size))
                return CUDA_ERROR_INVALID_VALUE;
        range.device = p->block->device;
        range.block = p->block;
        range.owner = p;
        if (is_mapped(NULL, at, size) || !range_add(&range))
                return CUDA_ERROR_INVALID_VALUE;
        r = block_map(p->block, at, size, offset);
        if (r != CUDA_SUCCESS) {
                range_remove(range_find(at));
                return r;
        }
        (void) block_use(p->block);
        (void) mprotect((void *) (uintptr_t) at, size, PROT_NONE); /* until access is granted */
        return CUDA_SUCCESS;
}

/* Whether [at, at + size) is made of whole mappings. */
static bool is_whole(CUdeviceptr at, size_t size) {
        while (size > 0) {
                const Range *r = range_find(at);

                if (!r || r->kind != RANGE_MAPPED || r->start != at || r->size > size)
                        return false;
                at += r->size;
                size -= r->size;
        }
        return true;
}

CUDA_API CUresult cuMemUnmap(CUdeviceptr at, size_t size) {
        LOCKED;
        CUresult r = state_check();

        if (r != CUDA_SUCCESS)
                return r;
        if (size == 0 || !is_whole(at, size))
                return CUDA_ERROR_INVALID_VALUE;
        address_clear(at, size);
        while (size > 0) {
                Range *range = range_find(at);
                Physical *p = range->owner;

                at += range->size;
                size -= range->size;
                range_remove(range);
                block_drop(p->block);
                sweep(p);
        }
        return CUDA_SUCCESS;
}

static int protection(int flags) {
        if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
                return PROT_READ;
        return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE : PROT_NONE;
}

/* The union of the rights of all named locations is one protection: they are all this process. */
CUDA_API CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const CUmemAccessDesc *list, size_t n) {
        LOCKED;
        CUresult r = state_check();
        int flags = 0;

        if (r != CUDA_SUCCESS)
                return r;
        if (!list || n == 0 || size == 0 || !is_whole(at, size))
                return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < n; i++)
                flags |= list[i].flags;
        if (mprotect((void *) (uintptr_t) at, size, protection(flags)) < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        for (CUdeviceptr p = at; p < at + size;) {
                Range *range = range_find(p);

                range->access = flags;
                p += range->size;
        }
        return CUDA_SUCCESS;
}

/* ---- other processes ---- */

CUDA_API CUresult cuMemExportToShareableHandle(void *ret, CUmemGenericAllocationHandle handle, int type,
                                               unsigned long long flags) {
        LOCKED;
        Physical *p;
        CUresult r = state_check();

        if (r == CUDA_SUCCESS)
                r = find_physical(handle, &p);
        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !p->block->own_file)
                return CUDA_ERROR_INVALID_VALUE;
        return share_export(p->block, ret);
}

CUDA_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret, void *handle, int type) {
        LOCKED;
        CUresult r = state_check();
        Block *b;

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                return CUDA_ERROR_INVALID_VALUE;
        r = share_import((int) (intptr_t) handle, &b);
        return r == CUDA_SUCCESS ? add_physical(b, ret) : r;
}
