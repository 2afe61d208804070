/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Looks at the directory of slices once a second. Truncates counter files that a container has
 * enlarged, before they fill the file system. Reports counters that went backwards, refused
 * allocations, and separately those refused for lack of a free row. Reports slices of `aliquot
 * run`, at every tenth look: the scheduler does not know of them, so it may promise their memory to
 * pods. No process is stopped. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "slicedir/slicedir.h"

typedef struct SlicedirWatch SlicedirWatch;

typedef struct ForeignSlice {
        const char *id, *owner; /* valid during the call */
        uint32_t card;          /* index, as its slice has it */
        const char *uuid;
        uint64_t bytes; /* its limit */
} ForeignSlice;

/* Called from the loop. A slice that grows is reported at most once a minute, and so are rewritten
 * counters. A foreign slice, and one without a free row, is reported once. Refusals are reported at
 * most once in ten minutes for a card of a slice, and not those from before the watch began. */
typedef struct SlicedirWatchOptions {
        sd_event *event;
        Slicedir *slicedir; /* outlives it; need not be open */
        usec_t period;      /* between two looks; 0: 1 s */
        void (*on_grown)(void *userdata, const SlicedirCard *grown);
        void (*on_rewritten)(void *userdata, const SlicedirCard *card);
        void (*on_rowless)(void *userdata, const SlicedirCard *card);
        /* refused: reservations since the slice was made. The container can write any number. */
        void (*on_refused)(void *userdata, const SlicedirCard *card, uint64_t refused);
        /* Returns false where it cannot be reported now: it is called again later. */
        bool (*on_foreign)(void *userdata, const ForeignSlice *foreign);
        void *userdata;
} SlicedirWatchOptions;

int slicedir_watch_new(const SlicedirWatchOptions *options, SlicedirWatch **ret); /* 0 or negative errno */
SlicedirWatch *slicedir_watch_free(SlicedirWatch *w);

uint64_t slicedir_watch_grown(const SlicedirWatch *w); /* truncated files, ever */
/* looks at counters that went backwards, ever */
uint64_t slicedir_watch_rewritten(const SlicedirWatch *w);
/* Bytes of this card in foreign slices, at the last look for them. */
uint64_t slicedir_watch_foreign(const SlicedirWatch *w, const char *uuid);

DEFINE_CLEANUP(SlicedirWatch *, slicedir_watch_free)
