/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's part of growth beyond limits (share/growth.h; docs/internals/resize.md). The leading
 * scheduler raises an entry of the node's annotation. The agent first writes the annotation itself,
 * with another serial. When the API server shows exactly that text, no older patch can change it
 * any more, and sizes may rise up to its entries. An entry falls only as far as the slice's size in
 * force and its counters, so memory that processes hold stays charged. */

#include "node/allocate/node_context.h"
#include "node/allocate/resizable.h"

void slice_growth_done(SliceGrowth *g);

/* The annotation as the Node object has it now. *ret_changed: it is another one. 0 or -ENOMEM. */
int slice_growth_observe(SliceGrowth *g, Str annotation, bool *ret_changed);

/* Whether the annotations of pods may ask for more than the limits. */
bool slice_growth_is_possible(const SliceGrowth *g);

/* Cuts the wanted sizes of a pod's containers to what may be in force now. Returns whether one of
 * them was cut: then *why says what is missing. */
bool slice_growth_cut(const SliceGrowth *g, const NodeContext *node, const RosterPod *pod,
                      const Record *record, Resizable *all, Fault *why);

/* The annotation as it must be, after sizes have risen or fallen. Returns 0 where it is so already,
 * 1 with the text, -ENOMEM, or -E2BIG where it would have more than GROWTH_MAX entries. *ret_waits:
 * an entry waits for processes to free memory. Call it once all pods and the cards are known. now:
 * since the epoch. A new annotation has it as its serial, and so a larger one than the annotation
 * that was lost. A reservation of the scheduler ends with such a serial. */
int slice_growth_plan(SliceGrowth *g, const NodeContext *node, usec_t now, Buf *ret, bool *ret_waits);
