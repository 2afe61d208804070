/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/report_aggregate.h"

#include "arbiter/window.h"

void report_aggregate_begin(ReportAggregate *t, uint64_t opened, uint64_t closed) {
        t->window_opened = opened;
        t->window_closed = closed;
        t->report.first_launch = t->report.stuck_since = t->report.drained_at = 0;
        t->all = t->counted = (ReportSum){.drained = true};
        t->report.ended = false;
        t->report.n_rows = 0;
}

static uint64_t four_times(uint64_t in_flight) {
        return 4 * min_u64(in_flight, MAX_IN_FLIGHT_NS);
}

/* The increase of a sum. A row that is read for the first time adds nothing: its sum is older than
 * this arbiter's windows. A sum that decreases belongs to another process that took the row. */
static uint64_t increase_of(uint64_t before, uint64_t after, bool known) {
        return known && after > before ? after - before : 0;
}

/* The last time until now that has these bits in WORK_BEGAN(); 0: none, or before the window. */
static uint64_t launch_time(uint32_t bits, uint64_t opened, uint64_t now) {
        uint64_t then = now - ((uint64_t) ((WORK_BEGAN(now) - bits) & UINT32_MAX) << 10);

        return bits != 0 && opened != 0 && then <= now && then + WORK_BEGAN_GRAIN >= opened ? then : 0;
}

static bool is_same(const RowReport *a, const RowReport *b) {
        return a->want_since == b->want_since && a->busy == b->busy && a->in_flight == b->in_flight &&
               a->launched == b->launched && a->drained == b->drained && a->first_launch == b->first_launch;
}

/* Whether work was in flight before, and no busy time was reported since. */
static bool has_unreported(const RowReport *before, const RowReport *after) {
        return before->in_flight > 0 && after->busy == before->busy;
}

static bool is_idle(const RowReport *report) {
        return report->want_since == 0 && report->in_flight == 0;
}

/* Stores a report that changed, and adds its increases. A silent row counts again. */
static void update_row(ReportAggregate *t, RowState *r, const RowReport *report, uint64_t now,
                       uint64_t most) {
        uint64_t more = min_u64(increase_of(r->report.busy, report->busy, r->known), most);

        if (r->known && is_same(&r->report, report))
                return;
        if (r->silent_since != 0)
                t->report.silent_busy += min_u64(more, since(r->silent_since, now));
        else
                t->report.busy += more;
        t->report.n_launched += r->known ? (uint32_t) (report->launched - r->report.launched) : 0; /* wraps */
        t->report.n_changes++;
        *r = (RowState){.report = *report,
                        .changed_at = now,
                        .unreported_since =
                                has_unreported(&r->report, report) && r->known ? r->unreported_since : now,
                        .drained_at = r->drained_at,
                        .known = true};
}

static bool is_undrained(const RowReport *report, uint32_t window) {
        return report->in_flight > 0 && report->drained != window;
}

static void add_to_sum(ReportSum *s, const RowReport *report, uint32_t window, uint64_t now) {
        uint64_t wants = min_u64(report->want_since, now);

        if (s->want_since == 0 || (wants > 0 && wants < s->want_since))
                s->want_since = wants > 0 ? wants : now;
        s->n_active++;
        s->n_working += is_undrained(report, window);
        if (is_undrained(report, window))
                s->drained = false;
        if (report->drained != window || window == 0)
                s->in_flight += min_u64(report->in_flight, MAX_IN_FLIGHT_NS);
}

/* Whether the row has not changed since its window closed, for four times its work in flight plus
 * SILENT_AFTER_NS. */
static bool is_stalled(const ReportAggregate *t, const RowState *r, uint32_t window, uint64_t now) {
        uint64_t from = r->changed_at > t->window_closed ? r->changed_at : t->window_closed;

        return t->window_closed != 0 && is_undrained(&r->report, window) &&
               since(from, now) > four_times(r->report.in_flight) + SILENT_AFTER_NS;
}

/* When the work of the window ended. A process with more work renews want_since at that time.
 * Without it, or if it lies before the close, the time of reading counts. */
static uint64_t drained_time(const ReportAggregate *t, const RowReport *report, uint64_t now) {
        return t->window_closed != 0 && report->want_since >= t->window_closed && report->want_since <= now
                       ? report->want_since
                       : now;
}

void report_aggregate_add(ReportAggregate *t, uint32_t row, const RowReport *report, uint32_t window,
                          uint64_t now, uint64_t most) {
        uint64_t then = launch_time(report->first_launch, t->window_opened, now);
        RowState *r = &t->rows[row];
        bool drains = window != 0 && report->drained == window && (!r->known || r->report.drained != window);

        update_row(t, r, report, now, most);
        t->report.n_rows++;
        if (drains)
                r->drained_at = drained_time(t, report, now);
        if (window != 0 && report->drained == window && r->drained_at > t->report.drained_at)
                t->report.drained_at = r->drained_at;
        t->report.ended |= window != 0 && report->drained == window;
        if (r->silent_since != 0 && (t->report.stuck_since == 0 || r->silent_since < t->report.stuck_since))
                t->report.stuck_since = r->silent_since;
        if (then != 0 && (t->report.first_launch == 0 || then < t->report.first_launch))
                t->report.first_launch = then;
        if (r->silent_since != 0 || is_idle(report))
                return;
        r->stalled = is_stalled(t, r, window, now);
        add_to_sum(&t->all, report, window, now);
        if (!r->stalled)
                add_to_sum(&t->counted, report, window, now);
}

/* Silent rows count as long as no other row of the container has work. */
void report_aggregate_end(ReportAggregate *t, uint64_t now) {
        bool leaves = t->counted.want_since != 0;
        const ReportSum *s = leaves ? &t->counted : &t->all;

        if (t->window_closed != 0 && t->died_at > t->window_closed && t->died_at > t->report.drained_at)
                t->report.drained_at = t->died_at;
        t->report.in_flight = s->in_flight;
        t->report.want_since = s->want_since;
        t->report.n_active = s->n_active;
        t->report.n_working = s->n_working;
        t->report.drained = s->drained;
        for (uint32_t i = 0; leaves && t->counted.n_active < t->all.n_active && i < SLICE_ROWS; i++)
                if (t->rows[i].stalled) {
                        t->rows[i].stalled = false;
                        t->rows[i].silent_since = now;
                        t->report.stuck_since = t->report.stuck_since != 0 ? t->report.stuck_since : now;
                }
}

/* Limits ns, the unreported use of a process that ended, to the bound for its work in flight. */
static uint64_t unreported_use(const RowState *r, uint64_t ns) {
        return min_u64(ns, four_times(r->report.in_flight) + MAX_UNREPORTED_NS);
}

void report_aggregate_forget(ReportAggregate *t, uint32_t row, uint64_t now) {
        RowState *r = &t->rows[row];

        if (r->silent_since != 0)
                t->report.silent_busy += unreported_use(r, since(r->silent_since, now) / 2);
        else if (r->known && r->report.in_flight > 0) {
                t->report.busy += unreported_use(r, since(r->unreported_since, now));
                t->died_at = now;
        }
        *r = (RowState){.known = false};
}
