/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pauses of a process within its window: what the arbiter hears of them, and when.
 *
 * A pause begins when nothing of the process is on the card and nobody waits, and ends with its
 * next work. Both are rung for, but
 *
 *   - where nobody else could have the card (SCHED_F_SOLE) the pause is written down instead (SliceRests): the arbiter reads that when it looks;
 *   - of pauses shorter than 0.2 ms that come in a row the begin of one is told in a millisecond: the others are held, and charged. */

#include "preload/launch/process.h"

/* In an open window: whether to ring for it. */
bool pause_begins(ProcessState *a, uint32_t card);

/* open: as now, behind the word that says that work has come. Whether to ring for that. */
bool pause_ends(ProcessState *a, uint32_t card, bool open);
