/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Two orders of nodes from the literature, written from their description and compared with the
 * published figures of their authors (docs/internals/packing.md).
 *   FGD      "Beware of Fragmentation" (Weng et al., USENIX ATC 2023): the node and the card on
 *            which the expected fragment grows least, processors included.
 *   BestFit  the node with the least left, processors and cards weighed alike. */

#include "world.h"

typedef struct Baseline Baseline;

Baseline *baseline_new(const World *w, bool fgd);
Baseline *baseline_free(Baseline *b);

/* Where the pod goes: the node and its cards. False: nowhere. */
bool baseline_choose(Baseline *b, const TracePod *p, uint32_t *ret_node, uint8_t *ret_cards);
