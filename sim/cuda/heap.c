/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim/cuda/memory.h"

/* As in the real libcuda: small pieces share chunks, in units of 512 bytes; larger ones have chunks
 * of their own. Plain memory has chunks of a large page, and pools have chunks of 32 MiB. */

enum {
        UNIT = 512,
        SMALL = 1 << 20,         /* the largest piece that shares a chunk of plain memory */
        POOL_GRANULE = 32 << 20, /* seen with 535.261.03 and 550.163.01, also where less is free */
};

struct Chunk {
        Chunk *next;
        Block *block;
        CUdeviceptr start;
        size_t size;
        bool shared;
        unsigned used;    /* units, or 1 */
        uint64_t taken[]; /* units of a shared chunk */
};

static size_t granule(const Heap *h) {
        return h->keeps ? POOL_GRANULE : GRANULE;
}

static unsigned units(const Chunk *c) {
        return (unsigned) (c->size / UNIT);
}

Block *chunk_block(const Chunk *c) {
        return c->block;
}

CUdeviceptr chunk_start(const Chunk *c) {
        return c->start;
}

/* ---- chunks ---- */

static void count(Heap *h, int64_t reserved, int64_t used) {
        h->reserved += (uint64_t) reserved;
        h->used += (uint64_t) used;
        if (h->reserved > h->reserved_high)
                h->reserved_high = h->reserved;
        if (h->used > h->used_high)
                h->used_high = h->used;
}

static CUresult chunk_new(Heap *h, size_t size, bool shared, Chunk **ret) {
        Chunk *c = calloc(1, sizeof *c + (shared ? size / UNIT / 8 : 0));
        CUresult r;

        if (!c)
                return CUDA_ERROR_OUT_OF_MEMORY;
        c->size = size;
        c->shared = shared;
        r = h->host ? block_new_host(h->device, size, false, &c->block)
                    : block_new(h->device, size, false, &c->block);
        if (r == CUDA_SUCCESS) {
                c->start = address_take(size, GRANULE, 0);
                r = c->start != 0 ? block_map(c->block, c->start, size, 0) : CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (r != CUDA_SUCCESS) {
                block_drop(c->block);
                if (c->start != 0)
                        address_drop(c->start, size);
                free(c);
                return r;
        }
        c->next = h->chunks;
        h->chunks = c;
        count(h, (int64_t) size, 0);
        *ret = c;
        return CUDA_SUCCESS;
}

static void chunk_free(Heap *h, Chunk *c) {
        for (Chunk **at = &h->chunks; *at; at = &(*at)->next)
                if (*at == c) {
                        *at = c->next;
                        break;
                }
        address_drop(c->start, c->size);
        block_drop(c->block);
        count(h, -(int64_t) c->size, 0);
        free(c);
}

/* ---- units of a shared chunk ---- */

static bool is_taken(const Chunk *c, unsigned unit) {
        return (c->taken[unit / 64] >> unit % 64 & 1) != 0;
}

static void set_taken(Chunk *c, unsigned from, unsigned n, bool taken) {
        for (unsigned i = from; i < from + n; i++) {
                uint64_t bit = 1ull << i % 64;

                c->taken[i / 64] = taken ? c->taken[i / 64] | bit : c->taken[i / 64] & ~bit;
        }
        c->used = taken ? c->used + n : c->used - n;
}

/* The first run of free units; units(c): there is none. */
static unsigned find_room(const Chunk *c, unsigned n) {
        unsigned run = 0;

        for (unsigned i = 0; i < units(c); i++) {
                run = is_taken(c, i) ? 0 : run + 1;
                if (run == n)
                        return i + 1 - n;
        }
        return units(c);
}

static CUresult alloc_small(Heap *h, size_t size, CUdeviceptr *ret, Chunk **ret_chunk) {
        unsigned n = (unsigned) ((size + UNIT - 1) / UNIT), at = 0;
        Chunk *c;

        for (c = h->chunks; c; c = c->next)
                if (c->shared && units(c) - c->used >= n) {
                        at = find_room(c, n);
                        if (at < units(c))
                                break;
                }
        if (!c) {
                CUresult r = chunk_new(h, granule(h), true, &c);

                if (r != CUDA_SUCCESS)
                        return r;
                at = 0;
        }
        set_taken(c, at, n, true);
        count(h, 0, (int64_t) n * UNIT);
        *ret = c->start + (CUdeviceptr) at * UNIT;
        *ret_chunk = c;
        return CUDA_SUCCESS;
}

/* ---- the heap ---- */

/* A free chunk that is large enough and wastes at most half. */
static Chunk *find_kept(const Heap *h, size_t size) {
        Chunk *best = NULL;

        for (Chunk *c = h->chunks; c; c = c->next)
                if (!c->shared && c->used == 0 && c->size >= size && c->size / 2 <= size &&
                    (!best || c->size < best->size))
                        best = c;
        return best;
}

CUresult heap_alloc(Heap *h, size_t size, CUdeviceptr *ret, Chunk **ret_chunk) {
        Chunk *c;
        CUresult r;

        if (size <= (h->keeps ? POOL_GRANULE : SMALL))
                return alloc_small(h, size, ret, ret_chunk);
        if (size > SIZE_MAX - granule(h))
                return CUDA_ERROR_OUT_OF_MEMORY;
        size = (size + granule(h) - 1) / granule(h) * granule(h);
        c = find_kept(h, size);
        if (!c) {
                r = chunk_new(h, size, false, &c);
                if (r != CUDA_SUCCESS)
                        return r;
        }
        c->used = 1;
        count(h, 0, (int64_t) c->size);
        *ret = c->start;
        *ret_chunk = c;
        return CUDA_SUCCESS;
}

void heap_free(Heap *h, Chunk *c, CUdeviceptr at, size_t size) {
        if (c->shared) {
                unsigned n = (unsigned) ((size + UNIT - 1) / UNIT);

                set_taken(c, (unsigned) ((at - c->start) / UNIT), n, false);
                count(h, 0, -(int64_t) n * UNIT);
        } else {
                c->used = 0;
                count(h, 0, -(int64_t) c->size);
        }
        if (c->used == 0 && !h->keeps)
                chunk_free(h, c);
}

void heap_trim(Heap *h, uint64_t keep) {
        Chunk *next;

        for (Chunk *c = h->chunks; c && h->reserved > keep; c = next) {
                next = c->next;
                if (c->used == 0)
                        chunk_free(h, c);
        }
}

void heap_done(Heap *h) {
        while (h->chunks)
                chunk_free(h, h->chunks);
}
