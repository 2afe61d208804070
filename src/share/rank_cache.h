/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A cache of fragment_rank() by node, for the last requests. From one pod to the next few nodes
 * change, while each pod is ranked on all nodes. */

#include <stddef.h>
#include <stdint.h>

#include "share/request.h"

enum { RANK_ROWS = 16 };

typedef struct RankRow {
        uint32_t mem, core, cards, cpu; /* of the request; cards 0: the row is free */
        uint64_t generation;            /* Fragment.generation of the ranks */
        uint64_t used;                  /* RankCache.clock at the last use */
        uint64_t *ranks;                /* by slot of the node; 0: not known */
} RankRow;

typedef struct RankCache {
        RankRow rows[RANK_ROWS];
        size_t last;
        uint64_t clock;
} RankCache;

/* The row of ranks for this request, which the caller fills in: `room` elements, by slot. NULL for
 * a request that chooses cards, and when memory is out. */
uint64_t *rank_cache_row(RankCache *c, const Request *r, uint64_t generation, size_t room);

void rank_cache_forget(RankCache *c, size_t slot); /* the node in the slot has changed */
void rank_cache_done(RankCache *c);                /* empties it; also needed when `room` changes */
