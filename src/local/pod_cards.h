/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A table for people: which pod has how much of which card. */

#include "base/buf.h"
#include "cli/inspect/inspect.h"
#include "local/tree.h"

/* pods, nodes: arrays of objects as the API server returns them. A pod that is not placed, or holds
 * no card, has no line; without any line nothing is printed. screen: no line is wider; NULL: as
 * wide as the texts are. Returns 0 or -ENOMEM. */
int pod_cards_print(const json_t *pods, const json_t *nodes, const InspectScreen *screen, Buf *out);
