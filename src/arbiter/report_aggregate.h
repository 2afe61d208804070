/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the processes of a container say of their work, made into one sum that can be reckoned with.
 * They may say anything: time that goes back, or jumps; work that never ends; wants of tomorrow.
 * Pure. */

#include "slice/page.h"

typedef struct RowReport { /* one row, as it was read */
        uint64_t want_since, busy, in_flight;
        uint32_t launched, drained, first_launch; /* as SliceWork has them */
        uint32_t flags;                           /* WORK_F_MASK of wants, which has all of them here */
} RowReport;

typedef struct RowState {
        RowReport report;    /* last */
        uint64_t changed_at; /* when that was something else than before */
        uint64_t
                unreported_since; /* since when it works on what is in flight and has not said that it used more */
        uint64_t
                silent_since; /* when it was left out: its work did not end, and nothing moved; 0: it counts */
        uint64_t drained_at;  /* when what it launched in the window that it drained last was */
        bool known, quiet;
} RowState;

/* What the rows come to, all of them or those that are not silent. */
typedef struct ReportSum {
        uint64_t in_flight, want_since;
        uint32_t n_active, n_working; /* rows that want; rows whose work is on the card */
        bool drained;
        bool waiter, blocked; /* a launch waits; and nothing that is in flight has begun */
} ReportSum;

typedef struct ReportAggregate {
        RowState rows[SLICE_ROWS];
        ReportSum all, counted;         /* while a pass is under way */
        uint64_t window_closed;         /* since when its newest window is; 0: it is open */
        uint64_t n_launched, n_changes; /* launches; words of its rows that were seen to change: ever, both */
        uint64_t silent_busy;           /* ns, ever: what rows used that had been left out, not in busy */
        uint64_t stuck_since;           /* since when the first of those that are left out is; 0: none */
        uint64_t busy, in_flight;       /* ns; busy since the tally was begun, and it never goes back */
        uint64_t want_since;            /* since when; 0: no process does */
        uint64_t window_opened,
                first_launch; /* when the newest window was, and when the first row began in it; 0: none did */
        uint64_t drained_at; /* when what rows had launched in the newest window was; 0: no row has said so */
        uint64_t died_at; /* when a row that had work in flight was last found without a process; 0: never */
        uint32_t n_rows, n_active, n_working; /* that were read; that want; whose work is on the card */
        bool drained, ended, waiter, blocked; /* as in TenantReport */
} ReportAggregate;

#define REPORT_AGGREGATE_NULL ((ReportAggregate){.drained = true})

/* One pass over what was read: begin, each living row, end. opened: when the tenant's newest window
 * was; closed: the same, 0 while it is open; window: its number. What a row says to have used
 * between two passes counts for no more than `most`, ns.
 *
 * A row whose work is not over for long after its window, though nothing of it moves (its process
 * is stopped, or dead with a child that has its lock), does not hold back those of its container
 * that have work: it is left out until it moves. What it says then to have used is told apart, and
 * counts for no more than the time since. */
void report_aggregate_begin(ReportAggregate *t, uint64_t opened, uint64_t closed);
void report_aggregate_add(ReportAggregate *t, uint32_t row, const RowReport *report, uint32_t window,
                          uint64_t now, uint64_t most);
void report_aggregate_end(ReportAggregate *t, uint64_t now);

/* The process of the row is gone. If it had been left out, half of the time since then is charged,
 * at most 1 s more than four times what it reported in flight. Otherwise its work in flight counts
 * as ended now, and at most that bound as used since its last report. */
void report_aggregate_forget(ReportAggregate *t, uint32_t row, uint64_t now);
