/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The memory of one simulated card: what is free of it, to the byte, and where. A block is what one
 * allocation got; it may be in several pieces, so that an allocation succeeds exactly when enough
 * is free. Blocks are counted by reference, because a duplicated object is one more reference to
 * the same memory. */

#include "gpu/cards/card_list.h"
#include "sim/engine/shape.h"

typedef struct SimExtent {
        uint64_t start, bytes;
} SimExtent;

typedef struct SimCard {
        MachineCard about;
        uint64_t bytes;    /* of the whole card */
        uint64_t reserved; /* of that, what the driver keeps for itself: never given out */
        uint64_t used;     /* by blocks */
        SimExtent *free;   /* by start, no two that touch */
        size_t n_free, capacity;
        size_t n_held;              /* pieces of all blocks */
        bool places[ENGINE_GROUPS]; /* of channel groups on its engines: those that are taken */
} SimCard;

typedef struct SimBlock {
        SimCard *card;
        uint64_t bytes;
        unsigned refs;
        size_t n;
        SimExtent extents[];
} SimBlock;

enum { SIM_CARD_E_FULL = 1, SIM_CARD_E_ATTRIBUTE };

/* 0, -ERANGE when more is reserved than there is, -ENOMEM. */
int sim_card_init(SimCard *c, const MachineCard *about, uint64_t reserved);
void sim_card_done(SimCard *c); /* no block may be left */

/* 0, SIM_CARD_E_FULL, or -ENOMEM. bytes: more than 0, as sim_card_round() gives them. */
int sim_card_take(SimCard *c, uint64_t bytes, SimBlock **ret);

SimBlock *sim_block_ref(SimBlock *b);
SimBlock *sim_block_unref(SimBlock *b); /* NULL; the last one gives the memory back, which cannot fail */

uint64_t sim_card_free(const SimCard *c);
SimExtent sim_card_largest(const SimCard *c); /* {0} when nothing is free */

/* What an allocation of this size takes, and attr with the page size in it that was chosen: the one
 * place that says so. 0, SIM_CARD_E_FULL when the size is beyond all cards, SIM_CARD_E_ATTRIBUTE
 * for pages that these cards do not have. */
int sim_card_round(uint64_t bytes, uint32_t *attr, uint32_t attr2, uint64_t *ret_bytes);
