/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The other processes of the container, and the arbiter's doorbell. */

#include "slice/slice.h"

/* What was last seen of each row. */
typedef struct Peers {
        uint64_t busy[SLICE_ROWS];
} Peers;

/* How many processes with a row of this slice have had work of the card lately, this one counted in
 * any case. Opens the counters for a moment where there are others, because the dead leave their
 * words behind. */
unsigned peers_count(Peers *p, const SliceUser *s);

/* A byte into the FIFO beside the pages: the arbiter looks. Where there is none nobody is to be
 * woken. */
void peers_ring_doorbell(const SliceUser *s);
