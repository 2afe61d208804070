/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The lock-free counter of the slice page: one reservation or release, and its recovery after the
 * process was killed in the middle. Loads, stores and compare-and-swap only, no system call.
 *
 * An operation takes effect at one instant, when the used word is swapped. Before that its lane
 * announces the operation, and afterwards the lane holds the result. In between, the used word
 * names lane and sequence of the operation. The next process that swaps the used word first records
 * in `noted` that it saw this operation.
 *
 * So it is always known whether an announced operation took effect: either the used word names it,
 * or it was noted. Both are checked in this order, because an operation is noted before the used
 * word stops naming it.
 *
 * Lanes are numbered over all rows: row * SLICE_LANES + lane. */

#include "slice/page.h"

#define SLICE_NO_LIMIT UINT64_MAX

/* Adds units, which may be negative, to the sum of all rows. The caller owns the lane. Returns 0,
 * or -ENOMEM: the sum would exceed limit (in units). Terminates whatever the counters contain, and
 * also while other processes overwrite them: a change that fails a million times is refused. That
 * includes a release; the units it did not release come back when the process ends. */
int slice_change(SliceCounters *c, uint32_t lane, int64_t units, uint64_t limit);

/* Completes the operation that a dead process began in each lane, so that the lanes hold the right
 * numbers and can be used again. Clears the row's SliceWork. The caller has the row's lock. */
void slice_complete(SliceCounters *c, uint32_t row);

/* Completes the row as slice_complete() does, and releases the units that it holds. The caller has
 * the row's lock. May be interrupted at any instruction and repeated by the next owner of the
 * lock. */
void slice_recover(SliceCounters *c, uint32_t row);

/* Returns the units that the row holds; they change at any time while the row's process lives. */
int64_t slice_row_held(const SliceRow *row);

/* Does the row hold nothing, with no operation announced? */
bool slice_row_at_rest(const SliceRow *row);
