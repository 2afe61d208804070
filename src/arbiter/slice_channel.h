/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A tenant at the daemon: the files of one slice of one card, as the arbiter has them open. limits is
 * mapped, because the window in it is a futex; besides the arbiter only the maker writes to it. counters
 * is read with pread, the doorbell is drained: what is in them is the tenant's, and may be anything at
 * any time. */

#include "arbiter/engine.h"
#include "arbiter/report_aggregate.h"

/* In DOORBELL_PERIOD_NS; whoever rings more is not heard until it is over. */
enum { SLICE_CHANNEL_RINGS = 64 };

typedef struct SliceChannel {
        SliceLimits *limits;
        int limits_fd, counters, doorbell; /* -1: there is none */
        uint64_t dev, ino;                 /* of limits */
        char uuid[SLICE_UUID];
        CardCompute compute;
        ComputeRequest request;
        ReportAggregate aggregate;
        EngineWindow window;                /* as it was written last */
        uint64_t written_at, window_opened; /* when; and when its newest window was */
        uint64_t swept_at, liveness_at; /* when all rows were read, and when living rows were looked for */
        uint64_t read_at;               /* when anything was */
        uint64_t period_since;          /* the doorbell: beginning of a period */
        uint32_t rings;
        uint64_t liveness_paused_until; /* looking for living rows takes too long */
        uint32_t n_checks_left;         /* that are left in this reading */
        uint32_t first, at;             /* places: this reading begins with, is at */
        uint32_t from[4]; /* the next one of its kind begins with: else some rows would never be met */
        uint32_t kind;
        bool passed_over; /* a row could not be asked for in this reading */
        uint32_t n_rows;
        uint8_t rows[SLICE_ROWS]; /* those that have work, or had it */
        bool is_row[SLICE_ROWS], dead[SLICE_ROWS];
} SliceChannel;

/* directory: of the slice page. 0; SLICE_FILES_E_DAMAGED: it is none, or has no schedule yet;
 * negative errno. */
int slice_channel_open(int directory, SliceChannel *ret);
void slice_channel_done(SliceChannel *s);

/* Opens what was not there before: counters are made anew where they were bad. */
void slice_channel_open_missing(SliceChannel *s, int directory);

/* limits says something else now. */
bool slice_channel_policy_changed(SliceChannel *s);

/* What its processes say. all: of rows that were at rest, too. doubt: whether those that have work
 * still live. Of a few of them only is that asked at a time. */
void slice_channel_read(SliceChannel *s, uint64_t now, bool all, bool check_liveness, TenantReport *ret);

/* Whether limits is still a whole page: the end of a file is the only thing that a mapping cannot
 * stand. */
bool slice_channel_is_whole(const SliceChannel *s);

/* Publishes the window with the arbiter's time, and wakes the threads that wait for it. */
void slice_channel_write(SliceChannel *s, const EngineWindow *w, uint64_t now);

/* Drains the doorbell. False: it has rung too often. */
bool slice_channel_drain_doorbell(SliceChannel *s, uint64_t now);
