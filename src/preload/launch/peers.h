/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The other processes of the container, and the arbiter's doorbell. */

#include "slice/slice.h"

/* The number of processes of this slice that want the card, at least this one. Opens the counters
 * file to check the locks of other rows, because ended processes leave their reports behind. */
unsigned peers_count(const SliceUser *s);

/* Rings the arbiter's doorbell: writes a byte into the FIFO of the slice page. Does nothing if
 * there is no FIFO. */
void peers_ring_doorbell(const SliceUser *s);
