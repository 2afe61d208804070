/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where cards come from. NVML is loaded at run time in a child process with a deadline, because a
 * hung driver must not hang the agent: a child that does not answer is killed, and what was known
 * stays known. It goes on trying, with a back-off from 1 s to 60 s, and never leaves more than a
 * few children behind that the kernel cannot end.
 *
 * A card that falls off the bus, or whose XIDs say that it is broken, keeps its place as an
 * unhealthy one and returns by itself: docs/cards.md. The caller is single-threaded, as fork()
 * without exec() demands. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "gpu/cards/fence.h"

typedef struct CardSource CardSource;

enum { CARD_USAGE_MAX = 4096 };

typedef struct CardUsage {
        char uuid[64];
        uint32_t pid;   /* of our pid namespace */
        uint64_t bytes; /* UINT64_MAX: the driver does not know */
} CardUsage;

typedef struct CardTotal {
        char uuid[64];
        uint64_t used; /* bytes, whoever has them; without what the driver keeps for itself */
} CardTotal;

typedef struct CardUse {
        char uuid[64];
        uint32_t pid;  /* of our pid namespace */
        uint64_t nsec; /* of the card's SMs, since the census before */
} CardUse;

typedef struct CardSpan {
        char uuid[64];
        uint64_t nsec;   /* since the census before; 0: nothing is known of it */
        char untold[80]; /* why the driver does not tell; "": it does */
} CardSpan;

/* One look at all cards; lent for the call. A card whose processes could not all be told, or of a
 * driver that does not tell its own part (older than 510), has no total. */
typedef struct CardCensus {
        const CardUsage *usage; /* what each process holds of each card */
        size_t n;
        const CardTotal *totals; /* by card, each once */
        size_t n_totals;
        const char *untold;  /* why some of it is missing; "": nothing is */
        const CardUse *uses; /* who used a card's time; nobody else did */
        size_t n_uses;
        const CardSpan *spans; /* by card, each once */
        size_t n_spans;
} CardCensus;

/* Called from the loop only, never from within a call below. card_source_rescan() may be called
 * from them, _free() not. */
typedef struct CardSourceHandler {
        /* The first scan, and each change after it; the list is lent for the call. */
        void (*on_cards)(void *userdata, const CardList *cards);
        /* No driver, a hung one, an error. Said once, and again when the words change or a scan
         * went well in between. */
        void (*on_trouble)(void *userdata, const Fault *fault);
        /* They changed, and are to outlive us; lent for the call. May be NULL. */
        void (*on_fences)(void *userdata, const CardFences *fences);
        /* What is in use, as the driver says. NULL: nobody asks. */
        void (*on_usage)(void *userdata, const CardCensus *census);
} CardSourceHandler;

typedef struct CardSourceOptions {
        const char *library;   /* NULL: libnvidia-ml.so.1 by the loader's own search, then below host_root */
        const char *host_root; /* where the host's root is seen, for /sys and /proc/driver; NULL: "/" */
        usec_t deadline;       /* of one answer of the child; 0: 10 s */
        usec_t rescan;         /* between two scans; 0: 30 s */
        usec_t backoff;        /* before the second try, doubling up to 60 times it; 0: 1 s */
        usec_t census;         /* between two calls of on_usage; 0: 1 s */
        usec_t quiet;          /* without an XID of a broken card until a fence lifts; 0: 10 min */
        const CardList *
                known; /* of an earlier run, as card_list_read() gives it: indexes stay. NULL: none. Copied */
        const CardFences *fences;  /* of an earlier run. NULL: none */
        const CardList *simulated; /* not NULL: these, and no child. Copied */
} CardSourceOptions;

/* Starts the first scan. 0 or negative errno. */
int card_source_new(sd_event *event, const CardSourceOptions *options, const CardSourceHandler *handler,
                    void *userdata, CardSource **ret);
CardSource *card_source_free(CardSource *s); /* and its child */

/* Now, not at the next turn, and by a new session of the driver's, which also sees cards that were
 * plugged in. */
void card_source_rescan(CardSource *s);

DEFINE_CLEANUP(CardSource *, card_source_free)
