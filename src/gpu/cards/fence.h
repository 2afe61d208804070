/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an XID did to a card, in a form that outlives the agent: by UUID and the time of day.
 * Without it a card that the driver asks to have reset would be given out again by whoever restarts
 * the agent. */

#include "gpu/cards/card_list.h"

typedef struct CardFence {
        char uuid[64];
        uint32_t xid; /* that fences it; 0: the fence has been lifted, and counts if there is another one */
        uint32_t relapses; /* within a day */
        uint64_t until;    /* milliseconds since 1970: it must be quiet until then */
        uint64_t lifted;   /* the last one; 0: never */
} CardFence;

typedef struct CardFences {
        CardFence list[CARDS_MAX]; /* no two of one card */
        size_t n;
} CardFences;

/* Nothing of it is worth a new file: times that differ by less than half a minute are the same. */
bool card_fences_near(const CardFences *a, const CardFences *b);

/* A text for the state directory. 0, CARDS_E_MALFORMED with a fault (*ret is empty then), or
 * -ENOMEM. */
int card_fences_read(Str json, CardFences *ret, Fault *fault);
void card_fences_write(const CardFences *f, Buf *out);
