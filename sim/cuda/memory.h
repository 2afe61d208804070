/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of a card: what the driver counts (Block), its addresses (Range), and how small pieces
 * share a large one (Heap). Contents are pages of a memfd, which are allocated when they are
 * written, so a card of 80 GiB costs nothing. A device pointer is the address of the memory in this
 * process. One memfd per process holds all blocks, at offsets that are never used again. A block
 * that other processes may get by a descriptor has a memfd of its own. */

#include "sim/cuda/api_memory.h"
#include "sim/cuda/state.h"

typedef struct Block {
        unsigned users;
        Device *device;
        uint32_t object; /* of the driver: class 0x40, or a duplicate */
        uint64_t size;
        int fd;
        uint64_t offset;
        bool own_file;
        bool shown; /* to other processes: its contents stay after it is freed here */
} Block;

/* OUT_OF_MEMORY: also after all kept memory was given back and the driver was asked again. */
CUresult block_new(Device *device, uint64_t size, bool own_file, Block **ret);
/* The same of the machine's memory, which the driver pins for the card. */
CUresult block_new_host(Device *device, uint64_t size, bool own_file, Block **ret);
/* Takes over an object of the driver and a part of a file, which is closed with the block. */
CUresult block_adopt(Device *device, uint32_t object, uint64_t size, int fd, uint64_t offset, Block **ret);
/* Whether memory at that location is the machine's, and the card that it is pinned for, or whose it
 * is. INVALID_VALUE: no such location. */
CUresult memory_location(const CUmemLocation *location, bool *ret_host, Device **ret);

Block *block_use(Block *b);
void block_drop(Block *b); /* the last one frees it */
CUresult block_map(const Block *b, CUdeviceptr at, size_t size, uint64_t offset);

/* Reserves addresses without memory. alignment: a power of two. 0: there are none. */
CUdeviceptr address_take(size_t size, size_t alignment, CUdeviceptr wish);
void address_clear(CUdeviceptr at, size_t size); /* nothing behind them again */
void address_drop(CUdeviceptr at, size_t size);

typedef enum RangeKind {
        RANGE_DEVICE, /* cuMemAlloc */
        RANGE_POOL,
        RANGE_MAPPED, /* cuMemMap */
        RANGE_GRAPH,  /* an allocation node; `block` is NULL until it has memory */
        RANGE_IPC,
        RANGE_EXTERNAL,
        RANGE_MODULE,
        RANGE_ARRAY, /* goes with its array */
        RANGE_MANAGED,
        RANGE_HOST,
        RANGE_REGISTERED,
} RangeKind;

typedef struct Range {
        CUdeviceptr start;
        size_t size;
        RangeKind kind;
        uint64_t id;
        CUcontext context; /* NULL: of no one context */
        Device *device;
        Block *block;        /* a reference of its own, or of the chunk */
        struct Chunk *chunk; /* of a heap */
        CUmemoryPool pool;
        uint32_t object; /* object of the driver, for host memory */
        unsigned flags, users;
        int access;  /* of RANGE_MAPPED: CU_MEM_ACCESS_FLAGS_* */
        void *owner; /* the allocation's handle, the graph's memory */
} Range;

/* Returns the copy of the range. NULL: no memory, or the addresses are taken. */
Range *range_add(const Range *r);
void range_remove(Range *r); /* frees the Range and nothing else */
Range *range_find(CUdeviceptr at);
/* Whether all of it is usable memory of the card, in one range or several. */
bool range_covers(CUdeviceptr at, size_t size);
/* Frees the ranges of a context, or all if c is NULL, by the function for their kind. */
void range_end_context(CUcontext c);
void range_free(Range *r); /* everything that it stands for */

/* ---- small pieces ---- */

struct Heap {
        Device *device;
        bool keeps; /* free chunks that are kept until a trim */
        bool host;  /* of the machine's memory */
        struct Chunk *chunks;
        uint64_t reserved, reserved_high, used, used_high;
};

typedef struct Chunk Chunk;

CUresult heap_alloc(Heap *h, size_t size, CUdeviceptr *ret, Chunk **ret_chunk);
void heap_free(Heap *h, Chunk *c, CUdeviceptr at, size_t size);
void heap_trim(Heap *h, uint64_t keep); /* frees kept chunks until at most this is reserved */
void heap_done(Heap *h);                /* frees all chunks, used or not */
Block *chunk_block(const Chunk *c);
CUdeviceptr chunk_start(const Chunk *c);

void memory_reclaim(Device *d); /* all kept memory of this card */
