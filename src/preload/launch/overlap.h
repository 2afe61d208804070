/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long launches take that were measured in several streams at once. Each stream's events see
 * what the others had on the card, too, so a batch's own time is too long. What batches of one kind
 * took together is no longer than from the begin of the first to the end of the last, where each
 * was beside another one: all of their work was done in it. So nobody learns too short, whatever he
 * has in which stream, and what is of another kind is not taken off. Of a kind of which little is
 * known, or which surprises, nothing is put off, and where they surprise together the longest of
 * them tells.
 *
 * Pure; for who measures a context, one thread at a time. */

#include <stdbool.h>

#include "preload/launch/estimate.h"

enum { OVERLAP_MAX = 16 }; /* batches: then they are learnt from, though more are beside them */

typedef struct Overlap {  /* all zero: nothing is put off */
        Estimate *of;     /* the kind; NULL: there is none */
        uintptr_t stream; /* of the first */
        bool streams;     /* there are others */
        uint32_t n;       /* batches */
        uint64_t from, to;
        EstimateShare all, longest; /* longest: for each of its launches */
        uint64_t longest_nsec;
} Overlap;

typedef struct OverlapBatch {
        EstimateShare share; /* some launches */
        uintptr_t stream;    /* a name for it */
        uint64_t from, to;   /* ns of the context's clock */
} OverlapBatch;

/* What was launched and is not measured yet. */
typedef struct OverlapPending {
        bool any, streams; /* streams: of several */
        uintptr_t stream;  /* of the first */
        uint64_t nsec;     /* estimated */
} OverlapPending;

void overlap_add(Overlap *t, const OverlapBatch *b);
void overlap_pending(OverlapPending *r, uintptr_t stream, uint64_t nsec); /* one more */
/* All that are measured were added. Learns what they took, unless what is left may have been on the
 * card beside them. */
void overlap_learn(Overlap *t, const OverlapPending *rest);
