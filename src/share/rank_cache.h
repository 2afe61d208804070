/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ranks of nodes by their expected fragment, for the requests that were asked about last. From one
 * pod to the next a few nodes change, while each pod is ranked on all of them. */

#include <stddef.h>
#include <stdint.h>

#include "share/request.h"

enum { RANK_ROWS = 16 };

typedef struct RankRow {
        uint32_t mem, core, cards, cpu; /* of the request; cards 0: the row is free */
        uint64_t generation;            /* of the typical shapes, Fragment.generation */
        uint64_t used;                  /* RankCache.clock when it was last asked for */
        uint64_t *ranks;                /* by slot; 0: not known */
} RankRow;

typedef struct RankCache {
        RankRow rows[RANK_ROWS];
        size_t last;
        uint64_t clock;
} RankCache;

/* The ranks of this request: `room` of them, each the caller's to fill in. NULL for a request that
 * chooses cards, and when there is no memory. */
uint64_t *rank_cache_row(RankCache *c, const Request *r, uint64_t generation, size_t room);

void rank_cache_forget(RankCache *c, size_t slot); /* the node there has changed */
void rank_cache_done(RankCache *c);                /* also when the room changes: it is empty then */
