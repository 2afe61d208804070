/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asks NVML how the cards of a machine are connected. Every function for that is optional, and an
 * error leaves the links unknown, which does no harm. */

#include "gpu/cards/card_list.h"
#include "gpu/cards/nvml.h"

typedef struct LinkedCard {
        NvmlDevice device;
        unsigned domain, bus, slot; /* PCI address */
        bool lost;                  /* a call said that the card does not answer: no more calls */
        uint8_t link_rate, switch_links;
        CardPeer peers[CARD_PEERS_MAX]; /* by position in the array of cards */
} LinkedCard;

/* Fills in the links of n cards, of which at most CARD_PEERS_MAX are asked. */
void probe_links_query(const Nvml *nvml, LinkedCard *cards, size_t n);
