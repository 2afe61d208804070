/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of a machine: what the driver tells of them (gpu/cards/card_source.h), or what stands in for
 * them where there is no driver. A card is known by its UUID and called by its index, because
 * annotations of running pods name indexes: an index stays with its card as long as the card is
 * known, so a list may have gaps. */

#include "base/buf.h"
#include "base/fault.h"

enum { CARDS_MAX = 256 };
enum { CARDS_E_MALFORMED = 1 };

typedef struct MachineCard {
        uint32_t index; /* below CARDS_MAX; NVML's, by PCI address, when the card was seen first */
        uint32_t minor; /* /dev/nvidia<minor> */
        uint32_t mib;   /* memory as nvidia-smi shows it, rounded down */
        int32_t numa;   /* -1 when there is none */
        bool healthy;
        char uuid[64];     /* GPU-...: letters, digits and '-', the first a letter, the last not a '-' */
        char model[96];    /* as NVML says it, with blanks */
        char pci[24];      /* 00000000:3B:00.0; "" for a simulated card */
        char trouble[160]; /* why it is not healthy, for people; "" when it is */
} MachineCard;

typedef struct CardList {
        MachineCard *cards; /* by index, no two of one UUID; owned by whoever has the list */
        size_t n;
} CardList;

void card_list_done(CardList *l); /* empty, and usable again */
bool card_list_eq(const CardList *a, const CardList *b);
int card_list_copy(const CardList *l, CardList *ret); /* 0 or -ENOMEM */
bool card_uuid_is_valid(const char *uuid);            /* what may stand in MachineCard.uuid */

/* A list as JSON, for the state directory: what was known last is served at once after a
 * restart. */
int card_list_read(Str json, CardList *ret, Fault *fault); /* 0, CARDS_E_MALFORMED, -ENOMEM */
void card_list_write(const CardList *l, Buf *out);
