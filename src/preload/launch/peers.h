/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The other processes of the container, and the arbiter's doorbell. */

#include "slice/slice.h"

/* The busy time last read from each row. */
typedef struct Peers {
        uint64_t busy[SLICE_ROWS];
} Peers;

/* The number of processes of this slice with recent work on the card, at least this one. Opens the
 * counters file to check the locks of other rows, because ended processes leave their reports
 * behind. */
unsigned peers_count(Peers *p, const SliceUser *s);

/* Rings the arbiter's doorbell: writes a byte into the FIFO of the slice page. Does nothing if
 * there is no FIFO. */
void peers_ring_doorbell(const SliceUser *s);
