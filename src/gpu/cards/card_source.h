/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where cards come from. NVML is loaded at run time in a child process with a deadline, because a
 * hung driver must not hang the agent. A child that does not answer is killed, and the last known
 * cards stay. New children follow with a back-off from 1 s to 60 s; at most a few that the kernel
 * cannot end are left behind.
 *
 * A card that falls off the bus, or whose XIDs say that it is broken, stays in the list as
 * unhealthy and recovers by itself: docs/use/cards.md. The caller is single-threaded, as fork()
 * without exec() requires. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "gpu/cards/census.h"
#include "gpu/cards/fence.h"

#include "gpu/cards/card_limit.h"

typedef struct CardSource CardSource;

/* Called from the loop only, never from within a call below. They may call card_source_rescan(),
 * but not card_source_free(). */
typedef struct CardSourceHandler {
        /* Passes the first scan's cards, and each change after it. The list is valid during the
         * call. */
        void (*on_cards)(void *userdata, const CardList *cards);
        /* Passes a problem: no driver, a hung driver, or an error. Called once, and again when the
         * text changes or a scan succeeded in between. */
        void (*on_trouble)(void *userdata, const Fault *fault);
        /* Fences changed and should be stored. Valid during the call. May be NULL. */
        void (*on_fences)(void *userdata, const CardFences *fences);
        /* Passes what is in use, as the driver reports it. NULL: no census is taken. */
        void (*on_usage)(void *userdata, const CardCensus *census);
        /* Passes the driver's version, "" where it reports none, and whether its files can be
         * locked. Called before the first on_cards and when either changes; not called for "" and
         * true. May be NULL. */
        void (*on_driver)(void *userdata, const char *version, bool locks);
        /* A session of the library has begun, and its cards have been scanned: the child can be
         * asked for limits. May be NULL. */
        void (*on_session)(void *userdata);
} CardSourceHandler;

typedef struct CardSourceOptions {
        /* NULL: libnvidia-ml.so.1 by the loader's search, then below host_root */
        const char *library;
        /* mount point of the host's root, for /sys and /proc/driver; NULL: "/" */
        const char *host_root;
        const char *ctl; /* path of nvidiactl; NULL: /dev/nvidiactl */
        usec_t deadline; /* for one answer of the child; 0: 10 s */
        usec_t rescan;   /* between two scans; 0: 30 s */
        usec_t backoff;  /* before the second attempt, doubling up to 60 times it; 0: 1 s */
        usec_t census;   /* between two calls of on_usage; 0: 1 s */
        usec_t quiet;    /* time without such an XID until a fence lifts; 0: 10 min */
        /* of an earlier run, from card_list_read(): indexes stay. NULL: none. Copied */
        const CardList *known;
        const CardFences *fences;  /* of an earlier run. NULL: none */
        const CardList *simulated; /* not NULL: publishes these cards and starts no child. Copied */
} CardSourceOptions;

/* Starts the first scan. Returns 0 or negative errno. */
int card_source_new(sd_event *event, const CardSourceOptions *options, const CardSourceHandler *handler,
                    void *userdata, CardSource **ret);
CardSource *card_source_free(CardSource *s); /* also kills its child */

/* Scans at once, with a new session of the driver's library, which also sees cards that were
 * plugged in. */
void card_source_rescan(CardSource *s);

/* Asks the child for a limit; done is called once from the loop, unless the request is cancelled.
 * *ret_request: its number, for card_source_cancel_limit(). 0, -EAGAIN where no child is ready or
 * too many requests wait, or negative errno; then done is not called. */
int card_source_limit(CardSource *s, const CardLimit *limit, CardLimitDone done, void *userdata,
                      uint32_t *ret_request);
/* Whether a child can be asked for limits. */
bool card_source_is_ready(const CardSource *s);
/* Does nothing if no such request waits. */
void card_source_cancel_limit(CardSource *s, uint32_t request);

DEFINE_CLEANUP(CardSource *, card_source_free)
