/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the processes of a container say of their work, made into one sum that can be reckoned with. They may say anything: time that
 * goes back, or jumps; work that never ends; wants of tomorrow. Pure. */

#include "slice/page.h"

typedef struct Said { /* one row, as it was read */
        uint64_t wants, busy, in_flight;
        uint32_t drained, began; /* as SliceWork has them */
} Said;

typedef struct TallyRow {
        uint64_t busy; /* as it said last */
        bool known;
} TallyRow;

typedef struct Tally {
        TallyRow rows[SLICE_ROWS];
        uint64_t busy, in_flight; /* ns; busy since the tally was begun, and it never goes back */
        uint64_t wants;           /* since when; 0: nobody does */
        uint64_t opened,
                began;       /* when the newest window was, and when the first row began in it; 0: none did */
        uint32_t n_active;   /* rows that want */
        bool drained, ended; /* as in EngineSays */
} Tally;

#define TALLY_NULL ((Tally){.drained = true})

/* One pass over what was read: begin, each living row, end. opened: when the tenant's newest window was; window: its number. What a row says to have
 * used between two passes counts for no more than `most`, ns. */
void tally_begin(Tally *t, uint64_t opened);
void tally_row(Tally *t, uint32_t row, const Said *said, uint32_t window, uint64_t now, uint64_t most);

/* Its process is gone: it will be met anew. */
void tally_forget(Tally *t, uint32_t row);
