/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The report of one tenant: the sum of what its processes report (report_aggregate.h).
 * Untrusted. */

#include <stdbool.h>
#include <stdint.h>

typedef struct TenantReport {
        uint64_t want_since;      /* has work since then; 0: has none */
        uint64_t busy, in_flight; /* ns of the card: sum of use, never decreases; estimated work in flight */
        uint64_t first_launch;    /* first launch in its newest window; 0: none */
        uint32_t n_rows, n_active, n_working; /* processes: ever with work; with work; on the card */
        uint64_t n_launched, n_changes;       /* sums: launches; changes of reports */
        uint64_t silent_busy; /* sum, ns: used beside windows by processes that were silent, not in busy */
        uint64_t stuck_since; /* a process with work that does not end is left out since then; 0: none */
        uint64_t drained_at;  /* end of its newest window's work as reported; 0: not known */
        bool drained;         /* no work of its newest window is in flight */
        bool ended;           /* a process has taken its newest window for closed */
} TenantReport;
