/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's part of growth beyond limits (share/growth.h; docs/internals/resize.md). The Node's
 * annotation has an entry for each slice and card. The leading scheduler raises an entry. The agent
 * then writes the annotation itself, with a new serial, so that the scheduler's older patches
 * conflict. Once the API server shows exactly that text, sizes may rise up to its entries. An entry
 * falls only as far as the slice's size in force and its counters, so memory that processes hold
 * stays charged. */

#include "node/allocate/node_context.h"
#include "node/allocate/resizable.h"

void slice_growth_done(SliceGrowth *g);

/* Takes the annotation as the Node object has it now. *ret_changed: it is another one. 0 or
 * -ENOMEM. */
int slice_growth_observe(SliceGrowth *g, Str annotation, bool *ret_changed);

/* Whether the annotations of pods may ask for more than the limits. */
bool slice_growth_is_possible(const SliceGrowth *g);

/* Cuts the wanted sizes of a pod's containers to what may be in force now. Returns whether one of
 * them was cut: then *why says what is missing. */
bool slice_growth_cut(const SliceGrowth *g, const NodeContext *node, const RosterPod *pod,
                      const Record *record, Resizable *all, Fault *why);

/* Makes the annotation as it must be after sizes have risen or fallen. Returns 0 where it is so
 * already, 1 with the text, -ENOMEM, or -E2BIG where it would have more than GROWTH_MAX entries.
 * *ret_waits: an entry waits for processes to free memory. Call it once all pods and the cards are
 * known. now: usec since the epoch. The serial of a new annotation follows it, and so is larger
 * than that of one that was lost. A reservation of the scheduler ends with such a serial. */
int slice_growth_plan(SliceGrowth *g, const NodeContext *node, usec_t now, Buf *ret, bool *ret_waits);
