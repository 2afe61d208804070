/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a tenant has had of the card in its newest window, and of work that others wait for no
 * longer. Times are ns. */

#include <stdbool.h>
#include <stdint.h>

typedef struct Part {
        uint64_t had;       /* its own */
        uint64_t turns;     /* others', while it was there */
        uint64_t unused;    /* of its own: before its first work, and nobody else was there */
        uint64_t came;      /* when it came to the card, or after a rest again; 0: it is not there */
        uint64_t undecided; /* what it had since then, if that may be the end of another one's turn */
        uint64_t expected;  /* when its work was to be over, by its own word */
        uint64_t heard;     /* of what it had, when it was last looked at how it rested, */
        uint64_t rested;    /* and what it said of that: ns, and how often, both ever */
        uint64_t
                back; /* of what it had, taken back for such rests: as far as it says to have used it, it is charged */
        uint32_t rests;
        bool second; /* somebody was there when it came */
} Part;

typedef struct Overdue {
        uint64_t since;       /* others wait no longer since then: all below is since then */
        uint64_t hung_from;   /* its kernel counts as one that hangs since then */
        uint64_t shared;      /* others' time */
        uint64_t beside;      /* its own, in others' windows */
        uint64_t behind;      /* of windows behind it */
        uint64_t late_before; /* that we were late, before the newest of those */
        uint64_t busy_before; /* its own word, ever, when it began */
        uint32_t n_behind;    /* those windows */
        uint32_t working;     /* processes that had work on the card, at most */
} Overdue;
