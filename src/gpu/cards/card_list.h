/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of a machine, from the driver (gpu/cards/card_source.h) or simulated
 * (simulated_cards.h). A card is identified by its UUID. Annotations of running pods name it by its
 * index, so a card keeps its index as long as it is known, and a list may have gaps. */

#include "base/buf.h"
#include "base/fault.h"
#include "gpu/cards/card_peer.h"

enum { CARDS_MAX = 256 };
#define CARD_MINOR_UNKNOWN UINT32_MAX
enum { CARDS_E_MALFORMED = 1 };

typedef struct MachineCard {
        uint32_t index; /* below CARDS_MAX; NVML's index when the card was first seen */
        uint32_t minor; /* /dev/nvidia<minor>; CARD_MINOR_UNKNOWN: that is another card's by now */
        uint32_t mib;   /* memory as nvidia-smi shows it, rounded down */
        int32_t numa;   /* -1 when there is none */
        bool healthy;
        /* GPU-...: letters, digits and '-'; it begins with a letter and does not end with '-' */
        char uuid[64];
        char model[96];                 /* as NVML reports it, with blanks */
        char pci[24];                   /* 00000000:3B:00.0; "" for a simulated card */
        char trouble[160];              /* why it is not healthy; "" when it is */
        uint8_t link_rate;              /* GB/s of one NVLink one way; 0: not known */
        uint8_t switch_links;           /* number of its NVLinks that lead to an NVSwitch */
        CardPeer peers[CARD_PEERS_MAX]; /* by index of the other card; all zero: not known */
} MachineCard;

typedef struct CardList {
        MachineCard *cards; /* by index, UUIDs are unique; owned by the list */
        size_t n;
        /* Cards that the driver has, but does not identify, and why; "": none. Not part of the
         * JSON. */
        char unnamed[200];
} CardList;

void card_list_done(CardList *l); /* empties the list, which can be used again */
bool card_list_eq(const CardList *a, const CardList *b);
int card_list_copy(const CardList *l, CardList *ret); /* 0 or -ENOMEM */
bool card_uuid_is_valid(const char *uuid);            /* whether it may stand in MachineCard.uuid */

/* The rate of the link between the cards at two positions of the list, GB/s one way; 0: not
 * known. */
uint16_t card_list_rate(const CardList *l, size_t a, size_t b);

/* Whether some pair of cards is faster than another: the links then say which cards to choose. */
bool card_list_rates_differ(const CardList *l);

/* The list as JSON, for the agent's state directory: after a restart the last known cards are
 * published at once. */
int card_list_read(Str json, CardList *ret, Fault *fault); /* 0, CARDS_E_MALFORMED, -ENOMEM */
void card_list_write(const CardList *l, Buf *out);
