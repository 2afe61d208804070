/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A look at the board of slices once a second. Counters that a container has made larger than they
 * are go back to their size, before they fill what they lie on. And slices of `aliquot run` are
 * looked for: the scheduler does not know of them, so what they hold of a card was promised to pods
 * as well. Neither is stopped; both are told of. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "slicedir/slicedir.h"

typedef struct SlicedirWatch SlicedirWatch;

typedef struct ForeignSlice {
        const char *id, *owner; /* lent for the call */
        uint32_t card;          /* index, as its maker counted */
        const char *uuid;
        uint64_t bytes; /* its limit */
} ForeignSlice;

/* From the loop. One slice is told of once a minute at most, however often it grows, and a foreign
 * one once as long as it lives. */
typedef struct SlicedirWatchOptions {
        sd_event *event;
        Slicedir *board; /* outlives it; may not be open */
        usec_t turn;     /* between two looks; 0: 1 s */
        void (*on_grown)(void *userdata, const SlicedirGrown *grown);
        bool (*on_foreign)(void *userdata,
                           const ForeignSlice *foreign); /* false: not now; it is asked again */
        void *userdata;
} SlicedirWatchOptions;

int slicedir_watch_new(const SlicedirWatchOptions *options, SlicedirWatch **ret); /* 0 or negative errno */
SlicedirWatch *slicedir_watch_free(SlicedirWatch *w);

uint64_t slicedir_watch_grown(const SlicedirWatch *w); /* how often files were cut back, ever */
/* What the slices of others hold of this card, in bytes, at the last look. */
uint64_t slicedir_watch_foreign(const SlicedirWatch *w, const char *uuid);

DEFINE_CLEANUP(SlicedirWatch *, slicedir_watch_free)
