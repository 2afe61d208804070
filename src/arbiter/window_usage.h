/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a tenant has had of the card in its newest window, and of work that others wait for no
 * longer. Times are ns. */

#include <stdbool.h>
#include <stdint.h>

typedef struct WindowUsage {
        uint64_t own;     /* its own */
        uint64_t others;  /* others', while it was there */
        uint64_t unused;  /* of its own: before its first work, and nobody else was there */
        uint64_t arrived; /* when it came to the card, or after a rest again; 0: it is not there */
        uint64_t
                undecided; /* what it had since then, if another tenant's time slice may have ended in that */
        uint64_t expected_end;      /* when its work was to be over, by its own word */
        uint64_t own_when_reported; /* of what it had, when it was last looked at how it rested, */
        uint64_t idle_reported;     /* and what it said of that: ns, and how often, both ever */
        uint64_t
                returned; /* of what it had, taken back for such rests: as far as it says to have used it, it is charged */
        uint32_t n_idle_reported;
        bool joined; /* somebody was there when it came */
} WindowUsage;

typedef struct Overrun {
        uint64_t since;             /* others wait no longer since then: all below is since then */
        uint64_t hung_since;        /* its kernel counts as one that hangs since then */
        uint64_t others;            /* others' time */
        uint64_t beside;            /* its own, in others' windows */
        uint64_t backlog_charged;   /* of windows behind it */
        uint64_t late_before;       /* that we were late, before the newest of those */
        uint64_t busy_before;       /* its own word, ever, when it began */
        uint32_t n_backlog_windows; /* those windows */
        uint32_t n_working;         /* processes that had work on the card, at most */
} Overrun;
