/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/report_aggregate.h"

#include "arbiter/tunables.h"

void report_aggregate_begin(ReportAggregate *t, uint64_t opened, uint64_t closed) {
        t->window_opened = opened;
        t->window_closed = closed;
        t->first_launch = t->stuck_since = t->drained_at = 0;
        t->all = t->counted = (ReportSum){.drained = true, .blocked = true};
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
        return 4 * min_u64(in_flight, MAX_IN_FLIGHT_NS);
}

/* What a row reports when it is read for the first time was used before this arbiter gave out
 * windows. A sum that goes back is that of another process, which has the row now. */
static uint64_t newly(uint64_t before, uint64_t after, bool known) {
        return known && after > before ? after - before : 0;
}

/* The time that has these bits, and is not after now: 0 where that is before the window. */
static uint64_t begun(uint32_t bits, uint64_t opened, uint64_t now) {
        uint64_t then = now - ((uint64_t) ((WORK_BEGAN(now) - bits) & UINT32_MAX) << 10);

        return bits != 0 && opened != 0 && then <= now && then + WORK_BEGAN_GRAIN >= opened ? then : 0;
}

static bool is_same(const RowReport *a, const RowReport *b) {
        return a->want_since == b->want_since && a->busy == b->busy && a->in_flight == b->in_flight &&
               a->launched == b->launched && a->drained == b->drained && a->first_launch == b->first_launch;
}

/* With what was in flight before, and says nothing of it. */
static bool continues(const RowReport *before, const RowReport *after) {
        return before->in_flight > 0 && after->busy == before->busy;
}

static bool is_idle(const RowReport *report) {
        return report->want_since == 0 && report->in_flight == 0;
}

/* Whatever moves is alive, and counts again. */
static void note(ReportAggregate *t, RowState *r, const RowReport *report, uint64_t now, uint64_t most) {
        uint64_t more = min_u64(newly(r->report.busy, report->busy, r->known), most);

        if (r->known && is_same(&r->report, report))
                return;
        if (r->silent_since != 0)
                t->silent_busy += min_u64(more, since(r->silent_since, now));
        else
                t->busy += more;
        t->n_launched += r->known ? (uint32_t) (report->launched - r->report.launched) : 0; /* it wraps */
        t->n_changes++;
        *r = (RowState){.report = *report,
                        .changed_at = now,
                        .unreported_since =
                                continues(&r->report, report) && r->known ? r->unreported_since : now,
                        .drained_at = r->drained_at,
                        .known = true};
}

static bool is_undrained(const RowReport *report, uint32_t window) {
        return report->in_flight > 0 && report->drained != window;
}

static void add(ReportSum *s, const RowReport *report, uint32_t window, uint64_t now) {
        uint64_t wants = min_u64(report->want_since, now);

        if (s->want_since == 0 || (wants > 0 && wants < s->want_since))
                s->want_since = wants > 0 ? wants : now;
        s->n_active++;
        s->waiter |= (report->flags & WORK_F_WAITER) != 0;
        s->blocked &= !is_undrained(report, window) || (report->flags & WORK_F_BLOCKED) != 0;
        s->n_working += is_undrained(report, window);
        if (is_undrained(report, window))
                s->drained = false;
        if (report->drained != window || window == 0)
                s->in_flight += min_u64(report->in_flight, MAX_IN_FLIGHT_NS);
}

/* Longer than its kernels take by its own word, and nothing has moved since its window closed. */
static bool is_quiet(const ReportAggregate *t, const RowState *r, uint32_t window, uint64_t now) {
        uint64_t from = r->changed_at > t->window_closed ? r->changed_at : t->window_closed;

        return t->window_closed != 0 && is_undrained(&r->report, window) &&
               since(from, now) > four_times(r->report.in_flight) + SILENT_AFTER_NS;
}

/* A process that still wants the card writes the time anew when its window's work is over. For one
 * that does not, or whose time is older, it is when the report was read. */
static uint64_t over_of(const ReportAggregate *t, const RowReport *report, uint64_t now) {
        return t->window_closed != 0 && report->want_since >= t->window_closed && report->want_since <= now
                       ? report->want_since
                       : now;
}

void report_aggregate_add(ReportAggregate *t, uint32_t row, const RowReport *report, uint32_t window,
                          uint64_t now, uint64_t most) {
        uint64_t then = begun(report->first_launch, t->window_opened, now);
        RowState *r = &t->rows[row];
        bool drains = window != 0 && report->drained == window && (!r->known || r->report.drained != window);

        note(t, r, report, now, most);
        t->n_rows++;
        if (drains)
                r->drained_at = over_of(t, report, now);
        if (window != 0 && report->drained == window && r->drained_at > t->drained_at)
                t->drained_at = r->drained_at;
        t->ended |= window != 0 && report->drained == window;
        if (r->silent_since != 0 && (t->stuck_since == 0 || r->silent_since < t->stuck_since))
                t->stuck_since = r->silent_since;
        if (then != 0 && (t->first_launch == 0 || then < t->first_launch))
                t->first_launch = then;
        if (r->silent_since != 0 || is_idle(report))
                return;
        r->quiet = is_quiet(t, r, window, now);
        add(&t->all, report, window, now);
        if (!r->quiet)
                add(&t->counted, report, window, now);
}

/* A silent process counts as long as no other process of the container has work. */
void report_aggregate_end(ReportAggregate *t, uint64_t now) {
        bool leaves = t->counted.want_since != 0;
        const ReportSum *s = leaves ? &t->counted : &t->all;

        if (t->window_closed != 0 && t->died_at > t->window_closed && t->died_at > t->drained_at)
                t->drained_at = t->died_at;
        t->in_flight = s->in_flight;
        t->want_since = s->want_since;
        t->n_active = s->n_active;
        t->n_working = s->n_working;
        t->drained = s->drained;
        t->waiter = s->waiter;
        t->blocked = s->waiter && s->blocked;
        for (uint32_t i = 0; leaves && t->counted.n_active < t->all.n_active && i < SLICE_ROWS; i++)
                if (t->rows[i].quiet) {
                        t->rows[i].quiet = false;
                        t->rows[i].silent_since = now;
                        t->stuck_since = t->stuck_since != 0 ? t->stuck_since : now;
                }
}

/* What a process that is gone may have used since its last report. */
static uint64_t unreported(const RowState *r, uint64_t ns) {
        return min_u64(ns, four_times(r->report.in_flight) + MAX_UNREPORTED_NS);
}

void report_aggregate_forget(ReportAggregate *t, uint32_t row, uint64_t now) {
        RowState *r = &t->rows[row];

        if (r->silent_since != 0)
                t->silent_busy += unreported(r, since(r->silent_since, now) / 2);
        else if (r->known && r->report.in_flight > 0) {
                t->busy += unreported(r, since(r->unreported_since, now));
                t->died_at = now;
        }
        *r = (RowState){.known = false};
}
