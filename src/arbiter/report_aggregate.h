/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Adds up what the processes of a container report of their work. The rows of the counters file are
 * untrusted: sums may go back or jump, work may never end, times may lie in the future. Pure. */

#include "arbiter/tenant_report.h"
#include "slice/page.h"

typedef struct RowReport { /* one row as it was read */
        uint64_t want_since, busy, in_flight;
        uint32_t launched, drained, first_launch; /* as in SliceWork */
} RowReport;

typedef struct RowState {
        RowReport report;          /* the newest */
        uint64_t changed_at;       /* the report last changed then */
        uint64_t unreported_since; /* work in flight without a report of busy time since then */
        uint64_t silent_since;     /* left out since then: no progress of its work; 0: it counts */
        uint64_t drained_at;       /* when the work of the window that it drained last ended */
        bool known, stalled;       /* read before; silent by the newest report, and not left out yet */
} RowState;

/* The sum over all rows, or over the rows that are not silent. */
typedef struct ReportSum {
        uint64_t in_flight, want_since;
        uint32_t n_active, n_working; /* rows with work; rows with work on the card */
        bool drained;
} ReportSum;

typedef struct ReportAggregate {
        RowState rows[SLICE_ROWS];
        ReportSum all, counted; /* valid between begin and end */
        TenantReport report;    /* the sum, valid after end; busy: since the aggregate began */
        uint64_t window_opened; /* the newest window opened then; 0: none has */
        uint64_t window_closed; /* the newest window closed then; 0: it is open */
        uint64_t died_at;       /* a row with work in flight lost its process then; 0: never */
} ReportAggregate;

#define REPORT_AGGREGATE_NULL ((ReportAggregate){.report = {.drained = true}})

/* One pass over the rows: begin, add for each living row, end. opened, closed: times of the
 * tenant's newest window; closed is 0 while it is open. window: its number. Between two passes a
 * row is charged for at most `most` ns.
 *
 * A row is silent if its work outlives its window for long and its report does not change: the
 * process is stopped, or dead while a child holds its lock. While other rows of the container have
 * work, silent rows are left out until their report changes. What they then report is added to
 * report.silent_busy, up to the time since they were left out. */
void report_aggregate_begin(ReportAggregate *t, uint64_t opened, uint64_t closed);
void report_aggregate_add(ReportAggregate *t, uint32_t row, const RowReport *report, uint32_t window,
                          uint64_t now, uint64_t most);
void report_aggregate_end(ReportAggregate *t, uint64_t now);

/* The row's process has ended. A silent row is charged half of the time since it was left out,
 * at most MAX_UNREPORTED_NS more than four times what it had in flight. Another row with work in
 * flight counts as drained now and is charged the time since its last report, up to the same
 * bound. */
void report_aggregate_forget(ReportAggregate *t, uint32_t row, uint64_t now);
