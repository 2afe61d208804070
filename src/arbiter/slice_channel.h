/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of one slice of one card, as the arbiter has them open: one channel per tenant.
 * `limits` is mapped, because the window in it is a futex; the agent that made it is the only other
 * writer. `counters` is read with pread, and the doorbell is drained: the tenant can write anything
 * there. */

#include "arbiter/engine.h"
#include "arbiter/report_aggregate.h"

/* Most rings in DOORBELL_PERIOD_NS; further ones are ignored until the period is over. */
enum { SLICE_CHANNEL_RINGS = 64 };

typedef struct SliceChannel {
        SliceLimits *limits;
        int limits_fd, counters, doorbell; /* file descriptors; -1: none */
        uint64_t dev, ino;                 /* of limits */
        char uuid[SLICE_UUID];
        CardCompute compute;
        ComputeRequest request;
        ReportAggregate aggregate;
        EngineWindow window;                /* as last written */
        uint64_t written_at, window_opened; /* when `window` was written; when the newest window opened */
        uint64_t swept_at, liveness_at;     /* when all rows were last read; when liveness was last checked */
        uint64_t period_since;              /* of the doorbell: begin of the period; rings in it */
        uint32_t rings;
        uint64_t liveness_paused_until; /* no liveness checks before: the last one took long */
        uint32_t n_checks_left;         /* liveness checks left in this reading */
        uint32_t start, position;       /* rows: first of this reading; current */
        uint32_t
                next_start[4]; /* by kind: where the next reading starts, so that no row is skipped forever */
        uint32_t read_kind;
        bool check_skipped; /* a row's liveness could not be checked in this reading */
        /* by row: a living process has or had work; its process is dead */
        bool is_row[SLICE_ROWS], dead[SLICE_ROWS];
} SliceChannel;

/* Opens the files in `directory`; slice_channel_done() closes them. Returns 0;
 * SLICE_FILES_E_DAMAGED: not a slice page, or cut short; or negative errno. -EAGAIN: a container
 * holds a lease on limits. */
int slice_channel_open(int directory, SliceChannel *ret);
void slice_channel_done(SliceChannel *s);

/* Opens files that could not be opened before: damaged counters are replaced. */
void slice_channel_open_missing(SliceChannel *s, int directory);

/* Whether the policy in `limits` has changed since the last call; updates the channel. */
bool slice_channel_policy_changed(SliceChannel *s);

/* Reads the processes' reports. all: read all rows, else only those known to have work.
 * check_liveness: check the locks of rows with work, LIVENESS_CHECKS of them at a time. */
void slice_channel_read(SliceChannel *s, uint64_t now, bool all, bool check_liveness, TenantReport *ret);

/* Whether `limits` still has its full size: access to a mapping beyond the end of the file raises
 * SIGBUS. */
bool slice_channel_is_whole(const SliceChannel *s);

/* Writes the window and the arbiter's time; wakes waiting threads if the window opened. */
void slice_channel_write(SliceChannel *s, const EngineWindow *w, uint64_t now);

/* Drains the doorbell. False: it rang SLICE_CHANNEL_RINGS times in this period. */
bool slice_channel_drain_doorbell(SliceChannel *s, uint64_t now);
