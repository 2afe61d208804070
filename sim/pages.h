/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mapping of nvidiaN: the memory of sim/engine/shape.h, as the server keeps it. The kernel
 * caches its pages. They are read from here when they are first touched, and written here when the
 * kernel writes them back. The server enters the channel groups here. Any thread may call these
 * functions. */

#include "sim/engine/shape.h"

typedef struct SimPages SimPages;

/* The speed of the card. */
typedef struct SimPace {
        uint64_t slice_nsec, change_nsec;
        uint64_t up, down, memory; /* bytes per microsecond */
} SimPace;

#define SIM_PACE_DEFAULT ((SimPace){1000000, 0, 25000, 25000, 1000000})

enum { SIM_PAGES_SIZE = sizeof(EngineShared) }; /* of one card */

/* NULL: no memory. */
SimPages *sim_pages_new(const SimPace *pace);
void sim_pages_free(SimPages *p);

/* at + n <= SIM_PAGES_SIZE. A write does not change the words of the server. */
void sim_pages_read(SimPages *p, size_t at, void *to, size_t n);
void sim_pages_write(SimPages *p, size_t at, const void *from, size_t n);

/* Words that changed, in the order in which processes with a mapping must see them. */
typedef struct SimStores {
        size_t n;
        struct {
                size_t at, n;
                uint8_t bytes[sizeof(EngineRow)];
        } list[3];
} SimStores;

void sim_pages_enter(SimPages *p, uint32_t slot, uint32_t client, uint32_t group, uint32_t pid,
                     SimStores *ret);
void sim_pages_leave(SimPages *p, uint32_t slot, uint64_t now, SimStores *ret);
