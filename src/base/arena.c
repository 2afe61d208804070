/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdalign.h>

enum { ARENA_BLOCK_SIZE = 16 * 1024 - 64 };

struct ArenaBlock {
        ArenaBlock *next;
        size_t used;
        size_t size;
        alignas(max_align_t) char bytes[];
};

static void blocks_free(ArenaBlock *block) {
        while (block) {
                ArenaBlock *next = block->next;
                free(block);
                block = next;
        }
}

void arena_done(Arena *a) {
        blocks_free(a->blocks);
        a->blocks = NULL;
}

void arena_reset(Arena *a) {
        if (!a->blocks)
                return;
        blocks_free(a->blocks->next);
        a->blocks->next = NULL;
        a->blocks->used = 0;
}

static ArenaBlock *arena_grow(Arena *a, size_t need) {
        size_t size = need > ARENA_BLOCK_SIZE ? need : ARENA_BLOCK_SIZE;
        ArenaBlock *block = malloc(sizeof(ArenaBlock) + size);

        if (!block)
                return NULL;
        *block = (ArenaBlock){.next = a->blocks, .size = size};
        a->blocks = block;
        return block;
}

void *arena_alloc(Arena *a, size_t count, size_t size) {
        ArenaBlock *block = a->blocks;
        size_t need;
        char *p;

        if (__builtin_mul_overflow(count, size, &need) || need > SIZE_MAX / 2)
                return NULL;
        need = (need + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
        if (!block || block->size - block->used < need) {
                block = arena_grow(a, need);
                if (!block)
                        return NULL;
        }
        p = block->bytes + block->used;
        block->used += need;
        memset(p, 0, need);
        return p;
}

Str arena_str(Arena *a, Str s) {
        char *copy = arena_alloc(a, s.len + 1, 1);

        if (!copy)
                return (Str){NULL, 0};
        if (s.len > 0)
                memcpy(copy, s.data, s.len);
        return (Str){copy, s.len};
}
