/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The memory of one simulated card: what is free of it, to the byte, and where. A block is one
 * allocation. It may have several pieces, so an allocation succeeds exactly if enough is free.
 * Blocks have a reference count, because a duplicated object is one more reference to the same
 * memory. */

#include "gpu/cards/card_list.h"
#include "sim/account.h"
#include "sim/engine/shape.h"

typedef struct SimExtent {
        uint64_t start, bytes;
} SimExtent;

typedef struct SimCard {
        MachineCard about;
        uint64_t bytes;    /* of the whole card */
        uint64_t reserved; /* of that, kept by the driver: never given out */
        uint64_t used;     /* by blocks */
        SimExtent *free;   /* by start; no two touch */
        size_t n_free, capacity;
        size_t n_held;             /* pieces of all blocks */
        bool slots[ENGINE_GROUPS]; /* slots of channel groups on its engines that are taken */
} SimCard;

typedef struct SimBlock {
        SimCard *card;
        uint64_t bytes;
        unsigned refs;
        SimCharge *charge; /* ends with the last reference; NULL: none */
        size_t n;
        SimExtent extents[];
} SimBlock;

enum { SIM_CARD_E_FULL = 1, SIM_CARD_E_ATTRIBUTE };

/* 0, -ERANGE when more is reserved than there is, -ENOMEM. */
int sim_card_init(SimCard *c, const MachineCard *about, uint64_t reserved);
void sim_card_done(SimCard *c); /* all blocks must be released */

/* 0, SIM_CARD_E_FULL, or -ENOMEM. bytes: more than 0, as sim_card_round() gives them. */
int sim_card_take(SimCard *c, uint64_t bytes, SimBlock **ret);

SimBlock *sim_block_ref(SimBlock *b);
SimBlock *sim_block_unref(
        SimBlock *
                b); /* Drops a reference; NULL: no block. The last one releases the memory, which cannot fail. */

uint64_t sim_card_free(const SimCard *c);
SimExtent sim_card_largest(const SimCard *c); /* {0} when nothing is free */

/* The size that an allocation takes, and attr with the chosen page size. 0, SIM_CARD_E_FULL if the
 * size exceeds all cards, SIM_CARD_E_ATTRIBUTE for pages that these cards do not have. */
int sim_card_round(uint64_t bytes, uint32_t *attr, uint32_t attr2, uint64_t *ret_bytes);
