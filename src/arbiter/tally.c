/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/tally.h"

#define IN_FLIGHT_MAX UINT64_C(3600000000000) /* ns; sums of 256 of these are far from wrapping */
#define SILENCE       UINT64_C(100000000)     /* ns, beyond four times what is in flight */
#define UNSAID        UINT64_C(1000000000)    /* ns: of who dies unheard */

void tally_begin(Tally *t, uint64_t opened, uint64_t closed) {
        t->opened = opened;
        t->closed = closed;
        t->began = t->stuck = t->over = 0;
        t->all = t->some = (TallySum){.drained = true, .tied = true};
        t->ended = false;
        t->n_rows = 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static uint64_t since(uint64_t then, uint64_t now) {
        return now > then ? now - then : 0;
}

static uint64_t four_times(uint64_t in_flight) {
        return 4 * min_u64(in_flight, IN_FLIGHT_MAX);
}

/* A row that is seen for the first time has used what it has used before: nobody held a window for
 * that here. One that goes back has another owner now. */
static uint64_t newly(uint64_t before, uint64_t after, bool known) {
        return known && after > before ? after - before : 0;
}

/* The time that has these bits, and is not after now: 0 where that is before the window. */
static uint64_t begun(uint32_t bits, uint64_t opened, uint64_t now) {
        uint64_t then = now - ((uint64_t) ((WORK_BEGAN(now) - bits) & UINT32_MAX) << 10);

        return bits != 0 && opened != 0 && then <= now && then + WORK_BEGAN_GRAIN >= opened ? then : 0;
}

static bool is_same(const Said *a, const Said *b) {
        return a->wants == b->wants && a->busy == b->busy && a->in_flight == b->in_flight &&
               a->launched == b->launched && a->drained == b->drained && a->began == b->began;
}

/* With what was in flight before, and says nothing of it. */
static bool works_on(const Said *before, const Said *after) {
        return before->in_flight > 0 && after->busy == before->busy;
}

static bool is_idle(const Said *said) {
        return said->wants == 0 && said->in_flight == 0;
}

/* Whatever moves is alive, and counts again. */
static void note(Tally *t, TallyRow *r, const Said *said, uint64_t now, uint64_t most) {
        uint64_t more = min_u64(newly(r->said.busy, said->busy, r->known), most);

        if (r->known && is_same(&r->said, said))
                return;
        if (r->silent != 0)
                t->apart += min_u64(more, since(r->silent, now));
        else
                t->busy += more;
        if (r->silent == 0 && is_idle(&r->said))
                t->unseen += more;
        t->launched += r->known ? (uint32_t) (said->launched - r->said.launched) : 0; /* it wraps */
        t->life++;
        *r = (TallyRow){.said = *said,
                        .moved = now,
                        .unsaid = works_on(&r->said, said) && r->known ? r->unsaid : now,
                        .over = r->over,
                        .known = true};
}

static bool is_undrained(const Said *said, uint32_t window) {
        return said->in_flight > 0 && said->drained != window;
}

static void add(TallySum *s, const Said *said, uint32_t window, uint64_t now) {
        uint64_t wants = min_u64(said->wants, now);

        if (s->wants == 0 || (wants > 0 && wants < s->wants))
                s->wants = wants > 0 ? wants : now;
        s->n_active++;
        s->waits |= (said->flags & WORK_F_WAITER) != 0;
        s->tied &= !is_undrained(said, window) || (said->flags & WORK_F_BLOCKED) != 0;
        s->n_working += is_undrained(said, window);
        if (is_undrained(said, window))
                s->drained = false;
        if (said->drained != window || window == 0)
                s->in_flight += min_u64(said->in_flight, IN_FLIGHT_MAX);
}

/* Longer than its kernels take by its own word, and nothing has moved since its window closed. */
static bool is_quiet(const Tally *t, const TallyRow *r, uint32_t window, uint64_t now) {
        uint64_t from = r->moved > t->closed ? r->moved : t->closed;

        return t->closed != 0 && is_undrained(&r->said, window) &&
               since(from, now) > four_times(r->said.in_flight) + SILENCE;
}

/* Who goes on wanting says so anew when his window's work is over; of who does not, or is older
 * than that, it is when it was seen. */
static uint64_t over_of(const Tally *t, const Said *said, uint64_t now) {
        return t->closed != 0 && said->wants >= t->closed && said->wants <= now ? said->wants : now;
}

void tally_row(Tally *t, uint32_t row, const Said *said, uint32_t window, uint64_t now, uint64_t most) {
        uint64_t then = begun(said->began, t->opened, now);
        TallyRow *r = &t->rows[row];
        bool drains = window != 0 && said->drained == window && (!r->known || r->said.drained != window);

        note(t, r, said, now, most);
        t->n_rows++;
        if (drains)
                r->over = over_of(t, said, now);
        if (window != 0 && said->drained == window && r->over > t->over)
                t->over = r->over;
        t->ended |= window != 0 && said->drained == window;
        if (r->silent != 0 && (t->stuck == 0 || r->silent < t->stuck))
                t->stuck = r->silent;
        if (then != 0 && (t->began == 0 || then < t->began))
                t->began = then;
        if (r->silent != 0 || is_idle(said))
                return;
        r->quiet = is_quiet(t, r, window, now);
        add(&t->all, said, window, now);
        if (!r->quiet)
                add(&t->some, said, window, now);
}

/* As long as nobody else of the container has work, one who is silent is all that is said of it. */
void tally_end(Tally *t, uint64_t now) {
        bool leaves = t->some.wants != 0;
        const TallySum *s = leaves ? &t->some : &t->all;

        if (t->closed != 0 && t->died > t->closed && t->died > t->over)
                t->over = t->died;
        t->in_flight = s->in_flight;
        t->wants = s->wants;
        t->n_active = s->n_active;
        t->n_working = s->n_working;
        t->drained = s->drained;
        t->waits = s->waits;
        t->tied = s->waits && s->tied;
        for (uint32_t i = 0; leaves && t->some.n_active < t->all.n_active && i < SLICE_ROWS; i++)
                if (t->rows[i].quiet) {
                        t->rows[i].quiet = false;
                        t->rows[i].silent = now;
                        t->stuck = t->stuck != 0 ? t->stuck : now;
                }
}

/* Of what it had on the card since its last word nobody says anything any more. */
static uint64_t unsaid(const TallyRow *r, uint64_t ns) {
        return min_u64(ns, four_times(r->said.in_flight) + UNSAID);
}

void tally_forget(Tally *t, uint32_t row, uint64_t now) {
        TallyRow *r = &t->rows[row];

        if (r->silent != 0)
                t->apart += unsaid(r, since(r->silent, now) / 2);
        else if (r->known && r->said.in_flight > 0) {
                t->busy += unsaid(r, since(r->unsaid, now));
                t->died = now;
        }
        *r = (TallyRow){.known = false};
}
