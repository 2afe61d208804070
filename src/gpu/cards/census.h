/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A census of all cards: what each process holds and uses of each. The child reports it piece by
 * piece (probe_report.h); a Census collects the pieces until it is complete. */

#include "base/clock.h"
#include "gpu/cards/probe_report.h"

enum { CARD_USAGE_MAX = 4096 };

typedef struct CardUsage {
        char uuid[64];
        uint32_t pid;   /* in the agent's pid namespace */
        uint64_t bytes; /* UINT64_MAX: the driver does not know */
} CardUsage;

typedef struct CardTotal {
        char uuid[64];
        uint64_t used; /* bytes of all processes, without the driver's own */
} CardTotal;

typedef struct CardUse {
        char uuid[64];
        uint32_t pid;  /* in the agent's pid namespace */
        uint64_t nsec; /* time of the card's SMs since the last census */
} CardUse;

typedef struct CardSpan {
        char uuid[64];
        /* time since the last census, which CardUse.nsec is a part of; 0: not known */
        uint64_t nsec;
        char untold[80]; /* why the driver reports no utilization; "": it does */
} CardSpan;

/* One census of all cards; valid during the call. A card has no total when not all of its processes
 * are known, or when its driver (older than 510) does not report its own part. */
typedef struct CardCensus {
        const CardUsage *usage; /* what each process holds of each card */
        size_t n;
        const CardTotal *totals; /* by card, each once */
        size_t n_totals;
        usec_t asked,
                came; /* of CLOCK_BOOTTIME: before the driver was asked, after its answer; 0: not known */
        const char *untold;  /* why some data is missing; "": nothing is */
        const CardUse *uses; /* time of the cards that processes used */
        size_t n_uses;
        const CardSpan *spans; /* by card, each once */
        size_t n_spans;
} CardCensus;

typedef struct Census {
        CardUsage *usage; /* room for CARD_USAGE_MAX; NULL: no census is taken. Owned */
        size_t n_usage;
        CardTotal totals[CARDS_MAX];
        size_t n_totals;
        CardUse *uses; /* room for CARD_USAGE_MAX, where usage is allocated. Owned */
        size_t n_uses;
        CardSpan spans[CARDS_MAX];
        size_t n_spans;
        bool uses_cut;
        bool cut; /* some processes of this census did not fit; uses_cut: some uses did not */
        char untold[64];
} Census;

/* Allocates the buffers, so that censuses are taken. Returns 0 or -ENOMEM; call census_done() in
 * any case. */
int census_init(Census *c);
void census_done(Census *c);

/* Drops what was collected, because the child ended. */
void census_forget(Census *c);

/* Takes a record PROCESS, TOTAL, USE or SPAN; ignores others. */
void census_take(Census *c, const ProbeReport *r);

/* Takes the record CENSUS, which ends the census. *ret is valid until the next census_take(), and
 * as long as *r. Returns false where no census is taken. */
bool census_end(Census *c, const ProbeReport *r, CardCensus *ret);
