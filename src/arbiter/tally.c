/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/tally.h"

#define IN_FLIGHT_MAX UINT64_C(3600000000000) /* ns; sums of 256 of these are far from wrapping */

void tally_begin(Tally *t, uint64_t opened) {
        t->opened = opened;
        t->began = 0;
        t->in_flight = 0;
        t->wants = 0;
        t->n_active = 0;
        t->drained = true;
        t->ended = false;
}

/* A row that is seen for the first time has used what it has used before: nobody held a window for that here. One that goes back has
 * another owner now. */
static uint64_t newly_busy(TallyRow *row, uint64_t busy, uint64_t most) {
        uint64_t more = row->known && busy > row->busy ? busy - row->busy : 0;

        row->busy = busy;
        row->known = true;
        return more < most ? more : most;
}

/* The time that has these bits, and is not after now: 0 where that is before the window. */
static uint64_t begun(uint32_t bits, uint64_t opened, uint64_t now) {
        uint64_t then = now - ((uint64_t) ((TURN_BEGAN(now) - bits) & UINT32_MAX) << 10);

        return bits != 0 && opened != 0 && then <= now && then + TURN_GRAIN >= opened ? then : 0;
}

void tally_row(Tally *t, uint32_t row, const Said *said, uint32_t window, uint64_t now, uint64_t most) {
        uint64_t wants = said->wants < now ? said->wants : now, then = begun(said->began, t->opened, now);

        t->ended |= window != 0 && said->drained == window;
        if (then != 0 && (t->began == 0 || then < t->began))
                t->began = then;
        t->busy += newly_busy(&t->rows[row], said->busy, most);
        if (said->wants == 0 && said->in_flight == 0)
                return;
        if (t->wants == 0 || (wants > 0 && wants < t->wants))
                t->wants = wants > 0 ? wants : now;
        t->n_active++;
        if (said->in_flight > 0 && said->drained != window)
                t->drained = false;
        if (said->drained != window || window == 0)
                t->in_flight += said->in_flight < IN_FLIGHT_MAX ? said->in_flight : IN_FLIGHT_MAX;
}

void tally_forget(Tally *t, uint32_t row) {
        t->rows[row] = (TallyRow){.busy = 0};
}
