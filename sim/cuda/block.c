/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/cuda/memory.h"

/* One file of the process: sparse, and so large that offsets are never used again. */
#define ARENA_SIZE (1ull << 60)

static int arena = -1;
static uint64_t arena_next;

static int make_file(uint64_t size) {
        int fd = memfd_create("aliquot-sim", MFD_CLOEXEC);

        if (fd >= 0 && ftruncate(fd, (off_t) size) < 0) {
                (void) close(fd);
                return -1;
        }
        return fd;
}

static uint64_t align_up(uint64_t n, uint64_t to) {
        return (n + to - 1) & ~(to - 1);
}

/* ---- blocks ---- */

static bool give_contents(Block *b, bool own_file) {
        if (own_file) {
                b->fd = make_file(b->size);
                b->own_file = b->fd >= 0;
                return b->fd >= 0;
        }
        if (arena < 0)
                arena = make_file(ARENA_SIZE);
        b->fd = arena;
        b->offset = arena_next;
        if (arena < 0 || b->size > ARENA_SIZE - arena_next)
                return false;
        arena_next += align_up(b->size, GRANULE);
        return true;
}

static uint32_t take_host(const Device *device, uint64_t size, uint32_t *object) {
        RmMemoryParams m = {.owner = state.driver.client, .size = size};

        return driver_alloc(&state.driver, device->card->device, RM_CLASS_MEMORY_SYSTEM, &m, object);
}

static uint32_t take(Device *device, bool host, uint64_t *size, uint32_t *object) {
        uint32_t status = host ? take_host(device, *size, object)
                               : driver_alloc_memory(&state.driver, device->card, size, object);

        if (host || status != RM_ERR_NO_MEMORY)
                return status;
        memory_reclaim(device);
        return driver_alloc_memory(&state.driver, device->card, size, object);
}

static CUresult new_block(Device *device, bool host, uint64_t size, bool own_file, Block **ret) {
        Block *b;
        uint32_t status;

        if (size == 0 || size > ARENA_SIZE / 2)
                return CUDA_ERROR_OUT_OF_MEMORY;
        b = calloc(1, sizeof *b);
        if (!b)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *b = (Block){.users = 1, .device = device, .size = size};
        status = take(device, host, &size, &b->object);
        if (status != RM_OK) {
                free(b);
                return from_status(status);
        }
        if (!give_contents(b, own_file)) {
                (void) driver_free(&state.driver, b->object);
                free(b);
                return CUDA_ERROR_OPERATING_SYSTEM;
        }
        *ret = b;
        return CUDA_SUCCESS;
}

CUresult block_new(Device *device, uint64_t size, bool own_file, Block **ret) {
        return new_block(device, false, size, own_file, ret);
}

CUresult block_new_host(Device *device, uint64_t size, bool own_file, Block **ret) {
        return new_block(device, true, size, own_file, ret);
}

CUresult block_adopt(Device *device, uint32_t object, uint64_t size, int fd, uint64_t offset, Block **ret) {
        Block *b = calloc(1, sizeof *b);

        if (!b)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *b = (Block){.users = 1,
                     .device = device,
                     .object = object,
                     .size = size,
                     .fd = fd,
                     .offset = offset,
                     .own_file = true};
        *ret = b;
        return CUDA_SUCCESS;
}

Block *block_use(Block *b) {
        b->users++;
        return b;
}

void block_drop(Block *b) {
        if (!b || --b->users > 0)
                return;
        (void) driver_free(&state.driver, b->object);
        if (b->own_file)
                (void) close(b->fd);
        else if (!b->shown)
                (void) fallocate(b->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) b->offset,
                                 (off_t) b->size);
        free(b);
}

CUresult block_map(const Block *b, CUdeviceptr at, size_t size, uint64_t offset) {
        void *p = mmap((void *) (uintptr_t) at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, b->fd,
                       (off_t) (b->offset + offset));

        if (p == MAP_FAILED)
                return CUDA_ERROR_MAP_FAILED;
        (void) madvise(p, size, MADV_DONTFORK); /* a child has no driver */
        return CUDA_SUCCESS;
}

/* ---- addresses ---- */

enum { NOTHING = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

CUdeviceptr address_take(size_t size, size_t alignment, CUdeviceptr wish) {
        size_t room = size + (alignment > 4096 ? alignment : 0), lead;
        char *p;

        if (size == 0 || room < size)
                return 0;
        if (wish != 0 && wish % alignment == 0) {
                p = mmap((void *) (uintptr_t) wish, size, PROT_NONE, NOTHING | MAP_FIXED_NOREPLACE, -1, 0);
                if (p == (char *) (uintptr_t) wish)
                        return wish;
                if (p != MAP_FAILED) /* a kernel that does not know the flag */
                        (void) munmap(p, size);
        }
        p = mmap(NULL, room, PROT_NONE, NOTHING, -1, 0);
        if (p == MAP_FAILED)
                return 0;
        lead = (size_t) (align_up((uintptr_t) p, alignment) - (uintptr_t) p);
        if (lead > 0)
                (void) munmap(p, lead);
        if (room - lead > size)
                (void) munmap(p + lead + size, room - lead - size);
        return (CUdeviceptr) (uintptr_t) (p + lead);
}

void address_clear(CUdeviceptr at, size_t size) {
        (void) mmap((void *) (uintptr_t) at, size, PROT_NONE, NOTHING | MAP_FIXED, -1, 0);
}

void address_drop(CUdeviceptr at, size_t size) {
        (void) munmap((void *) (uintptr_t) at, size);
}
