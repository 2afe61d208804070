/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fences of cards by XIDs, in a form that survives a restart of the agent: by UUID and time of day.
 * Without it, a card that needs a reset would be given out again after a restart. */

#include "gpu/cards/card_list.h"

typedef struct CardFence {
        char uuid[64];
        /* the XID that fences it; 0: the fence was lifted, and only its relapses count */
        uint32_t xid;
        uint32_t relapses; /* within a day */
        uint64_t until;    /* milliseconds since 1970: the end of the quiet time */
        uint64_t lifted;   /* end of the last fence; 0: never */
} CardFence;

typedef struct CardFences {
        CardFence list[CARDS_MAX]; /* one per card */
        size_t n;
} CardFences;

/* Whether both lists are equal, except that times may differ by less than half a minute. Then the
 * file is not rewritten. */
bool card_fences_near(const CardFences *a, const CardFences *b);

/* The fences as JSON, for the agent's state directory. Reading returns 0, -ENOMEM, or
 * CARDS_E_MALFORMED with a fault; *ret is then empty. */
int card_fences_read(Str json, CardFences *ret, Fault *fault);
void card_fences_write(const CardFences *f, Buf *out);
