/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long launches take that were measured in several streams at once. Each stream's events see what the others had on the card, too,
 * so a batch's own time is too long. What batches of one kind took together is no longer than the union of their times, and no shorter than
 * their work: all of that was done in it. So nobody learns too short, whatever he has in which stream, and what is of another kind is not
 * taken off. Of a kind of which little is known, or which surprises, nothing is put off, and of a surprise the longest batch tells.
 *
 * Pure; for who measures a context, one thread at a time. */

#include <stdbool.h>

#include "turnstile/estimate.h"
#include "turnstile/spans.h"

typedef struct Together { /* all zero: nothing is put off */
        Estimate *of;     /* the kind; NULL: there is none */
        uintptr_t stream; /* of the first */
        bool streams;     /* there are others */
        uint32_t n;       /* batches: no more than spans are exact for */
        EstimateShare all, longest;
        uint64_t nsec, longest_nsec; /* of all, their union; of that which took longest for each launch */
        Spans spans;
} Together;

typedef struct TogetherBatch {
        EstimateShare share;
        uintptr_t stream;  /* a name for it */
        uint64_t from, to; /* ns */
} TogetherBatch;

/* What was launched and is not measured yet. */
typedef struct TogetherRest {
        bool any, streams; /* streams: of several */
        uintptr_t stream;  /* of the first */
        uint64_t nsec;     /* estimated */
} TogetherRest;

void together_rest(TogetherRest *r, uintptr_t stream, uint64_t nsec); /* one more */
void together_add(Together *t, const TogetherBatch *b);
/* Those that were there are added. Learns what they took, unless something may be on the card beside them that is still to be added. */
void together_settle(Together *t, const TogetherRest *rest);
