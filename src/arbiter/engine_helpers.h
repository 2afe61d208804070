/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What several parts of the engine ask of a tenant. */

#include "arbiter/engine_state.h"
#include "arbiter/tunables.h"

static inline uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b) {
        return a > b ? a : b;
}

static inline uint64_t since(uint64_t then, uint64_t now) {
        return now > then ? now - then : 0;
}

static inline bool wants(const EngineTenant *t) {
        return t->report.want_since != 0;
}

/* Something was launched in its newest window, or may have been. */
static inline bool has_launched(const EngineTenant *t) {
        return t->first_launch != 0 || t->extended || t->report.n_launched != t->launched_before ||
               t->report.busy != t->busy_before || t->report.in_flight > 0;
}

/* Who comes first runs ahead of those who come after him: whoever begins or wakes begins where his
 * own kind is. */
static inline int64_t virtual_clock(const Engine *e, const TenantPolicy *policy) {
        return e->virtual_clocks[policy->high];
}

static inline void advance_virtual_clock(Engine *e, const EngineTenant *t) {
        if (t->policy.conserving && t->account.clock > virtual_clock(e, &t->policy))
                e->virtual_clocks[t->policy.high] = t->account.clock;
}

/* Its work is late, and others wait no longer. */
static inline bool is_overrun(const EngineTenant *t) {
        return t->state == ENGINE_OVERRUN || t->window.ignore_backlog;
}

/* Its window is closed, and nothing of it is in flight. */
static inline bool is_drained(const EngineTenant *t) {
        return t->report.drained && t->reported_at >= t->window.closes;
}

/* It has nothing to do in its window, nor had when that was closed: that is not charged, and
 * anybody else may have the card. */
static inline bool is_resting(const EngineTenant *t) {
        return (t->state == ENGINE_OPEN || (t->state == ENGINE_CLOSING && is_drained(t))) &&
               t->idle_since != 0 && !t->window.ignore_backlog;
}

/* The window of a tenant is closed, and not over. */
static inline bool engine_is_closing(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state == ENGINE_CLOSING)
                        return true;
        return false;
}

/* ns: so long nobody gets the card in a pause, because it may be the way to the next kernel. Whose
 * pauses are longer as a rule does not come back so soon: that time would be nobody's. Who comes
 * first keeps it all the same: another one's kernel may be what he waits for then. */
static inline uint64_t idle_close_after(const EngineTenant *t) {
        return t->gap_mean > IDLE_CLOSE_NS * 7 / 8 && !t->policy.high ? 0 : IDLE_CLOSE_NS;
}

/* So long before the end of a window the next one is opened, as that one's owner has been late. */
static inline uint64_t engine_preopen(const EngineTenant *t) {
        return max_u64(PREOPEN_NS,
                       min_u64(NOTIFY_LATENCY_NS / 2 + t->start_delay * 3 / 2, MAX_START_DELAY_NS));
}
