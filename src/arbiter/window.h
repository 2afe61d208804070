/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One tenant's window: opened, extended, closed, charged. i: the tenant's number. Times are ns.
 *
 * A window costs what its tenant measured (the union of the spans between its events), but no more
 * than the time that it held the card. Where another tenant waited meanwhile it costs at least the
 * time held, less UNUSED_SLACK_NS: the report may be a lie, and the other tenant was kept out. */

#include "arbiter/engine_state.h"
#include "arbiter/tunables.h"

static inline uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

static inline uint64_t since(uint64_t then, uint64_t now) {
        return now > then ? now - then : 0;
}

static inline bool wants(const EngineTenant *t) {
        return t->report.want_since != 0;
}

/* Of its work: the card takes turns between contexts. */
static inline uint64_t window_contexts(const EngineTenant *t) {
        return max_u64(1, min_u64(t->report.n_working, MAX_CONTEXTS));
}

/* Its work is late and others wait no longer, also while it has a window behind that work. */
static inline bool window_is_overrun(const EngineTenant *t) {
        return t->state == ENGINE_OVERRUN || t->window.ignore_backlog;
}

/* The only place that changes a state; with a log it says old -> new. */
void window_set_state(EngineTenant *t, EngineState state);

/* Something was launched in its newest window, or may have been. */
bool window_is_used(const EngineTenant *t);
/* Closed, and nothing that was launched in it is in flight. */
bool window_is_drained(const EngineTenant *t);
/* When its work will have ended, by the tenant's estimates. */
uint64_t window_predicted_end(const EngineTenant *t, uint64_t now);
/* Until then others wait for its work. */
uint64_t window_drain_deadline(const EngineTenant *t);

void window_open(Engine *e, uint32_t i, uint64_t now, bool contended);
void window_extend(Engine *e, uint32_t i, uint64_t now, bool contended);
void window_close(Engine *e, uint32_t i, uint64_t now);
/* Below 0: what was charged too much. */
void window_charge(Engine *e, EngineTenant *t, int64_t ns);
/* Charges what the window costs until `end`, less what was charged before. */
void window_settle(Engine *e, EngineTenant *t, uint64_t end);
/* Its tenant reports that it had used `more` than it had said. */
void window_late_report(Engine *e, EngineTenant *t, uint64_t more, uint64_t now);
/* The card may have given it so many ns in OVERRUN, to so many contexts. */
void window_charge_overrun(Engine *e, EngineTenant *t, uint64_t ns, uint64_t contexts);
/* Whatever a closed window comes to: it has drained, or is in OVERRUN, or has left that. */
void window_step(Engine *e, uint32_t i, uint64_t now);
/* Nothing is known of what its tenant has on the card: as after the end of a window. */
void window_reset(Engine *e, uint32_t i);
