/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/api_memory.h"
#include "sim/cuda/share.h"

/* Memory of cuMemAlloc in another process. The handle names the exporter's object and the file of
 * its contents, which is reached through /proc. So both must see the same processes, as with the
 * real driver. The whole chunk of the allocation is shared. */

#define IPC_MAGIC 0x43504951u /* "QIPC" */

typedef struct IpcBody {
        uint32_t magic, client, object;
        int32_t pid, fd;
        uint32_t delta; /* of the pointer in the chunk */
        uint64_t inode, offset, size;
        uint8_t uuid[16];
} IpcBody;
_Static_assert(sizeof(IpcBody) == sizeof(CUipcMemHandle), "an IPC handle has 64 bytes");

CUDA_API CUresult cuIpcGetMemHandle(CUipcMemHandle *ret, CUdeviceptr at) {
        LOCKED;
        IpcBody body = {.magic = IPC_MAGIC, .client = state.driver.client, .pid = getpid()};
        CUresult r = state_check();
        const Range *range;
        struct stat s;

        if (r != CUDA_SUCCESS)
                return r;
        range = range_find(at);
        if (!ret || !range || range->kind != RANGE_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        if (fstat(range->block->fd, &s) < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        range->block->shown = true;
        body.object = range->block->object;
        body.fd = range->block->fd;
        body.delta = (uint32_t) (range->start - chunk_start(range->chunk));
        body.inode = s.st_ino;
        body.offset = range->block->offset;
        body.size = range->block->size;
        memcpy(body.uuid, range->device->card->uuid_bytes, sizeof body.uuid);
        memcpy(ret, &body, sizeof body);
        return CUDA_SUCCESS;
}

/* ---- opening ---- */

typedef struct Opened { /* one chunk of another process; a second open gives the same one */
        struct Opened *next;
        IpcBody body;
        CUcontext context;
        Range *range;
} Opened;

static Opened *opened;

static Opened *find_opened(const IpcBody *b, CUcontext c) {
        for (Opened *o = opened; o; o = o->next)
                if (o->body.client == b->client && o->body.object == b->object && o->body.inode == b->inode &&
                    o->context == c)
                        return o;
        return NULL;
}

/* Forgets what was freed with its context. */
static void sweep(void) {
        for (Opened **link = &opened; *link;) {
                Opened *o = *link;

                if (o->context->alive) {
                        link = &o->next;
                        continue;
                }
                *link = o->next;
                free(o);
        }
}

static int open_contents(const IpcBody *b) {
        char path[64];
        struct stat s;
        int fd;

        (void) snprintf(path, sizeof path, "/proc/%d/fd/%d", b->pid, b->fd);
        fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return -1;
        if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_ino == b->inode && b->size > 0 &&
            b->offset < (uint64_t) s.st_size && b->size <= (uint64_t) s.st_size - b->offset)
                return fd;
        (void) close(fd);
        return -1;
}

static CUresult open_block(const IpcBody *b, Block **ret) {
        Device *d = share_device(b->uuid);
        uint32_t object = 0;
        CUresult r;
        int fd;

        if (!d)
                return CUDA_ERROR_INVALID_DEVICE;
        fd = open_contents(b);
        if (fd < 0)
                return CUDA_ERROR_INVALID_VALUE;
        r = share_duplicate(d, b->client, b->object, &object);
        if (r == CUDA_SUCCESS)
                r = block_adopt(d, object, b->size, fd, b->offset, ret);
        if (r != CUDA_SUCCESS)
                (void) close(fd);
        return r == CUDA_ERROR_UNKNOWN ? CUDA_ERROR_INVALID_VALUE : r;
}

static CUresult open_range(const IpcBody *b, CUcontext c, Range **ret) {
        Range range = {.kind = RANGE_IPC, .context = c, .users = 1};
        Block *block;
        CUresult r = open_block(b, &block);

        if (r != CUDA_SUCCESS)
                return r;
        range.block = block;
        range.device = block->device;
        range.size = block->size;
        range.start = address_take(range.size, GRANULE, 0);
        r = range.start != 0 ? block_map(block, range.start, range.size, 0) : CUDA_ERROR_OUT_OF_MEMORY;
        if (r == CUDA_SUCCESS) {
                *ret = range_add(&range);
                r = *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (r != CUDA_SUCCESS) {
                if (range.start != 0)
                        address_drop(range.start, range.size);
                block_drop(block);
        }
        return r;
}

static CUresult open_handle(CUdeviceptr *ret, const IpcBody *b) {
        CUcontext c;
        CUresult r = context_enter(&c);
        Opened *o;

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || b->magic != IPC_MAGIC || b->delta >= b->size)
                return CUDA_ERROR_INVALID_VALUE;
        if (b->client == state.driver.client)
                return CUDA_ERROR_INVALID_CONTEXT; /* one's own */
        sweep();
        o = find_opened(b, c);
        if (o) {
                o->range->users++;
                *ret = o->range->start + b->delta;
                return CUDA_SUCCESS;
        }
        o = calloc(1, sizeof *o);
        if (!o)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *o = (Opened){.next = opened, .body = *b, .context = c};
        r = open_range(b, c, &o->range);
        if (r != CUDA_SUCCESS) {
                free(o);
                return r;
        }
        opened = o;
        *ret = o->range->start + b->delta;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags) {
        LOCKED;
        IpcBody body;

        memcpy(&body, &handle, sizeof body);
        return flags & ~(unsigned) CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ? CUDA_ERROR_INVALID_VALUE
                                                                      : open_handle(ret, &body);
}

CUDA_API CUresult cuIpcOpenMemHandle(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags) {
        LOCKED;
        IpcBody body;

        memcpy(&body, &handle, sizeof body);
        return open_handle(ret, &body);
}

CUDA_API CUresult cuIpcCloseMemHandle(CUdeviceptr at) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);
        Range *range;

        if (r != CUDA_SUCCESS)
                return r;
        sweep();
        range = range_find(at);
        if (!range || range->kind != RANGE_IPC)
                return CUDA_ERROR_INVALID_VALUE;
        if (--range->users > 0)
                return CUDA_SUCCESS;
        for (Opened **link = &opened; *link; link = &(*link)->next)
                if ((*link)->range == range) {
                        Opened *o = *link;

                        *link = o->next;
                        free(o);
                        break;
                }
        range_free(range);
        return CUDA_SUCCESS;
}
