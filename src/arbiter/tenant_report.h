/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a tenant says of itself, all of its processes together (report_aggregate.h): it may be anything. */

#include <stdbool.h>
#include <stdint.h>

typedef struct TenantReport {
        uint64_t want_since;                  /* since when it has work; 0: it has none */
        uint64_t busy, in_flight;             /* ns of the card, ever, never goes back; ns */
        uint64_t first_launch;                /* when it first launched in its newest window; 0: it has not */
        uint32_t n_rows, n_active, n_working; /* processes: that had work ever; that have; and on the card */
        uint64_t n_launched, n_changes;       /* launches, and words that moved: ever, both */
        uint64_t
                silent_busy; /* ns of the card beside windows, ever, not in busy: of processes that were silent */
        uint64_t stuck_since; /* since when a process is left out, whose work does not end; 0: none is */
        uint64_t
                drained_at; /* when what was launched in its newest window was, by its own word; 0: just now */
        bool drained;       /* nothing that was launched in its newest window is in flight */
        bool ended;         /* it takes its newest window for over */
        bool waiter,
                blocked; /* a launch waits; and nothing that is in flight has begun, maybe because of that */
} TenantReport;
