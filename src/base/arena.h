/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An allocator for many small pieces that are freed together: what one decoded object or one
 * request needs. A reset keeps the memory for the next one. Not for data that grows over the life
 * of a connection. */

#include "base/cleanup.h"
#include "base/str.h"

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
        ArenaBlock *blocks; /* newest first */
} Arena;

#define ARENA_NULL ((Arena){0})

void arena_done(Arena *a);
void arena_reset(Arena *a); /* frees all allocations; keeps the newest block */

/* Zeroed, aligned for any type; NULL when out of memory or when the product overflows. */
void *arena_alloc(Arena *a, size_t count, size_t size) __attribute__((warn_unused_result));

#define arena_new(a, type, count) ((type *) arena_alloc((a), (count), sizeof(type)))

/* Returns a copy that is also NUL-terminated; its data is NULL when out of memory. */
Str arena_str(Arena *a, Str s);

#define _cleanup_arena_ _cleanup_(arena_done)
