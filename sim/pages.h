/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What programs map of nvidiaN: the memory of sim/engine/shape.h, as the server keeps it. The
 * kernel holds its pages; here is where they come from when they are first touched and where they
 * go when it writes them back, and here the server enters which channel groups there are. Any
 * thread. */

#include "sim/engine/shape.h"

typedef struct SimPages SimPages;

/* How fast the card is. */
typedef struct SimPace {
        uint64_t slice_nsec, change_nsec;
        uint64_t up, down, memory; /* bytes per microsecond */
} SimPace;

#define SIM_PACE_DEFAULT ((SimPace){1000000, 0, 25000, 25000, 1000000})

enum { SIM_PAGES_SIZE = sizeof(EngineShared) }; /* of one card */

/* NULL: no memory. */
SimPages *sim_pages_new(const SimPace *pace);
void sim_pages_free(SimPages *p);

/* at + n <= SIM_PAGES_SIZE. What is the server's stays as it is when it is written. */
void sim_pages_read(SimPages *p, size_t at, void *to, size_t n);
void sim_pages_write(SimPages *p, size_t at, const void *from, size_t n);

/* What changed and must be seen by those who have it mapped, in this order. */
typedef struct SimStores {
        size_t n;
        struct {
                size_t at, n;
                uint8_t bytes[sizeof(EngineRow)];
        } list[3];
} SimStores;

void sim_pages_enter(SimPages *p, uint32_t place, uint32_t client, uint32_t group, uint32_t pid,
                     SimStores *ret);
void sim_pages_leave(SimPages *p, uint32_t place, uint64_t now, SimStores *ret);
