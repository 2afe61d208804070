/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The heart of the slice page: one reservation or release, and what became of one whose process was
 * killed in it. Nothing but loads, stores and compare-and-swap on the counters, no system call.
 *
 * A change goes through at one instant, when the used word is swapped; its lane says before what it
 * is about to do, and afterwards what it holds now. Between the two the used word itself names lane
 * and sequence, and whoever swaps it next first writes down that it saw them (`noted`). So of an
 * operation that is still announced it is known whether it went through, for ever: the used word
 * names it, or it was noted; in this order, because it is noted before it is gone from the used
 * word.
 *
 * Lanes are numbered over all rows: row * SLICE_LANES + lane. */

#include "slice/page.h"

#define SLICE_NO_LIMIT UINT64_MAX

/* Adds units, which may be negative, to what all hold. The caller has the lane for itself. 0, or
 * -ENOMEM: they would be more than limit then. Terminates whatever the counters contain and whoever
 * scribbles over them: a change that finds no moment to go through in a million tries is refused, a
 * release likewise (what is not released comes back when the process ends). */
int slice_change(SliceCounters *c, uint32_t lane, int64_t units, uint64_t limit);

/* Completes what a dead process began: its lanes hold then what they hold, and whoever has the
 * row's lock may go on in them. */
void slice_complete(SliceCounters *c, uint32_t row);

/* The same, and gives back what its row holds; its SliceWork is zero then. The caller has the row's
 * lock. May be cut short at any instruction, and called again by the next who has the lock. */
void slice_recover(SliceCounters *c, uint32_t row);

int64_t slice_row_held(const SliceRow *row); /* units; of a living process a number that is in motion */
bool slice_row_at_rest(const SliceRow *row); /* holds nothing and is about to do nothing */
