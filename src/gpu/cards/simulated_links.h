/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The links between simulated cards, made from text:
 *
 *     0-3=NV2/4-7=NV2/0+4=NV1/0-7=PHB/0-3=NUMA0/4-7=NUMA1
 *
 * An entry names a set of cards by index, in ranges joined by "+", and what the set has. NV1 to
 * NV18 are direct NVLinks of each pair. INT, PIX, PXB, PHB, NODE and SYS are the path of each pair.
 * SW1 to SW18 are the NVLinks of each card to one switch, so that all cards that have some are
 * peers. NUMA0 to NUMA31 is the node of each card. Of several entries about one thing the last
 * counts. With any entry, a pair that none is about has the path SYS. */

#include "gpu/cards/card_list.h"

/* Sets the links of the cards in l from text. Returns 0, or CARDS_E_MALFORMED with a fault; the
 * list must not be used then. */
int simulated_links_read(Str text, CardList *l, Fault *fault);
