/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Notes on a Node besides its numbers: our conditions that are True, and a change that waits. Also
 * that it is not Ready, takes no pods, or holds slices of deleted pods. */

#include "base/arena.h"
#include "cli/inspect/report_rows.h"
#include "wire/node.h"

/* Reads the notes. node: decoded from `object`. The notes and their texts live in `arena`;
 * `scratch` is for temporary memory. A part of the object that is malformed gives no note. Returns
 * 0 or -ENOMEM. */
int node_notes_read(Str object, const Node *node, Arena *scratch, Arena *arena, InspectNode *ret);
