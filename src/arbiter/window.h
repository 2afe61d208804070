/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The window of one tenant: opens, extends, closes and charges it. i: the tenant's index; times are
 * ns.
 *
 * A window costs what its tenant measured (the union of the spans between its events), at most the
 * time that it held the card. If another tenant waited meanwhile, it costs at least the time held
 * less UNUSED_SLACK_NS: the report may be false, and the other tenant was kept waiting. */

#include "arbiter/engine_state.h"
#include "arbiter/tunables.h"
#include "base/minmax.h"

static inline uint64_t since(uint64_t then, uint64_t now) {
        return now > then ? now - then : 0;
}

static inline bool wants(const EngineTenant *t) {
        return t->report.want_since != 0;
}

/* Contexts with work on the card, which the card's time slices are divided among. */
static inline uint64_t window_contexts(const EngineTenant *t) {
        return max_u64(1, min_u64(t->report.n_working, MAX_CONTEXTS));
}

/* Whether a closed window of the card has not drained. */
bool window_any_closing(const Engine *e);

/* The only function that changes a state; with ENGINE_LOG it prints old -> new. */
void window_set_state(EngineTenant *t, EngineState state);

/* Whether the newest window was used: there are launches, busy time, or work in flight. */
bool window_is_used(const EngineTenant *t);
/* Whether the newest window is closed and none of its work is in flight. */
bool window_is_drained(const EngineTenant *t);
/* Estimates when the window's work will have ended, from the tenant's reports. */
uint64_t window_predicted_end(const EngineTenant *t, uint64_t now);
/* The deadline for the window's work to drain: other tenants wait for it until then. */
uint64_t window_drain_deadline(const EngineTenant *t);

/* Opens or extends the window. contended: another tenant waits, or will before a quantum has
 * passed. */
void window_open(Engine *e, uint32_t i, uint64_t now, bool contended);
void window_extend(Engine *e, uint32_t i, uint64_t now, bool contended);
void window_close(Engine *e, uint32_t i, uint64_t now);
/* Charges ns of card time to the account and to window.used. Negative: refunds an earlier
 * charge. */
void window_charge(Engine *e, EngineTenant *t, int64_t ns);
/* Charges the window's cost until `end`, less what was charged before. */
void window_settle(Engine *e, EngineTenant *t, uint64_t end);
/* Charges `more` ns that the tenant reported after its window was closed and charged. */
void window_late_report(Engine *e, EngineTenant *t, uint64_t more, uint64_t now);
/* Charges work in OVERRUN: the card may have run it for ns, in this number of contexts. */
void window_charge_overrun(Engine *e, EngineTenant *t, uint64_t ns, uint64_t contexts);
/* Advances a closed window: drained, OVERRUN, or the end of OVERRUN. */
void window_step(Engine *e, uint32_t i, uint64_t now);
/* Sets the state as after a window's close, where the tenant's work on the card is unknown. */
void window_reset(Engine *e, uint32_t i);
