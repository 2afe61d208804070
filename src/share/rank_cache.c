/* SPDX-License-Identifier: Apache-2.0 */
#include "share/rank_cache.h"

#include <stdlib.h>
#include <string.h>

static bool is_for(const RankRow *row, const Request *r) {
        return row->cards == r->cards && row->mem == r->mem && row->core == r->core && row->cpu == r->cpu;
}

/* The row of the request, or the least recently used one. */
static size_t find(const RankCache *c, const Request *r) {
        size_t oldest = 0;

        for (size_t i = 0; i < RANK_ROWS; i++) {
                if (is_for(&c->rows[i], r))
                        return i;
                if (c->rows[i].used < c->rows[oldest].used)
                        oldest = i;
        }
        return oldest;
}

static uint64_t *begin(RankRow *row, const Request *r, uint64_t generation, size_t room) {
        if (!row->ranks)
                row->ranks = malloc(room * sizeof *row->ranks);
        if (!row->ranks)
                return NULL;
        memset(row->ranks, 0, room * sizeof *row->ranks);
        row->mem = r->mem;
        row->core = r->core;
        row->cards = r->cards;
        row->cpu = r->cpu;
        row->generation = generation;
        return row->ranks;
}

uint64_t *rank_cache_row(RankCache *c, const Request *r, uint64_t generation, size_t room) {
        RankRow *row = &c->rows[c->last];

        if (r->choice)
                return NULL;
        if (is_for(row, r) && row->generation == generation)
                return row->ranks;
        c->last = find(c, r);
        row = &c->rows[c->last];
        row->used = ++c->clock;
        return is_for(row, r) && row->generation == generation ? row->ranks : begin(row, r, generation, room);
}

void rank_cache_forget(RankCache *c, size_t slot) {
        for (size_t i = 0; i < RANK_ROWS; i++)
                if (c->rows[i].ranks)
                        c->rows[i].ranks[slot] = 0;
}

void rank_cache_done(RankCache *c) {
        for (size_t i = 0; i < RANK_ROWS; i++)
                free(c->rows[i].ranks);
        *c = (RankCache){0};
}
