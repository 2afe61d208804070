/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/pick.h"

#include <stddef.h>

#include "arbiter/window.h"

enum { RANK_NONE, RANK_SPENT, RANK_CONSERVING, RANK_CAPPED, RANK_HIGH };

/* enough: the tokens that a tenant with a cap needs for a window, ns. */
static int rank(const EngineTenant *t, int64_t enough) {
        int64_t tokens = account_tokens(&t->account);

        if (t->policy.high && tokens > 0)
                return RANK_HIGH;
        if (t->policy.conserving)
                return t->policy.high ? RANK_SPENT : RANK_CONSERVING;
        return tokens >= enough ? RANK_CAPPED : RANK_NONE;
}

static int rank_of(const EngineTenant *t) {
        return rank(t, (int64_t) QUANTUM_NS);
}

static bool is_waiting(const EngineTenant *t, bool closing) {
        if (!t->policy.gated || !wants(t) || (t->planned_end != 0 && !closing))
                return false;
        return t->state == ENGINE_CLOSED || (t->state == ENGINE_CLOSING && closing);
}

static bool is_before(const EngineTenant *a, int rank_a, const EngineTenant *b, int rank_b) {
        if (rank_a != rank_b)
                return rank_a > rank_b;
        if (rank_a == RANK_CONSERVING || rank_a == RANK_SPENT)
                return a->account.clock < b->account.clock;
        return account_lag(&a->account, &a->policy) > account_lag(&b->account, &b->policy);
}

int pick_next(const Engine *e, const EngineTenant *but, bool closing, uint64_t now) {
        int best = -1, best_rank = RANK_NONE;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];
                int r = t != but && is_waiting(t, closing) && now >= t->backoff_until ? rank_of(t)
                                                                                      : RANK_NONE;

                if (r == RANK_NONE || (best >= 0 && !is_before(t, r, &e->tenants[best], best_rank)))
                        continue;
                best = (int) i;
                best_rank = r;
        }
        return best;
}

bool pick_keeps_owner(const Engine *e, const EngineTenant *owner, const EngineTenant *other, uint64_t more) {
        int64_t clock = e->virtual_clocks[owner->policy.high];
        EngineTenant after = *owner;
        int mine, others;

        account_charge(&after.account, &owner->policy, (int64_t) more, clock);
        mine = rank(&after, (int64_t) QUANTUM_NS / 2);
        if (!other)
                return mine != RANK_NONE;
        others = rank(other, (int64_t) QUANTUM_NS);
        account_charge(&after.account, &owner->policy, (int64_t) QUANTUM_NS, clock);
        return mine != RANK_NONE && is_before(&after, mine, other, others);
}

bool pick_is_first(const EngineTenant *t, const EngineTenant *other) {
        return rank_of(t) != RANK_NONE && (!other || !is_before(other, rank_of(other), t, rank_of(t)));
}

/* How far the tenant is behind, ns. A virtual clock is taken relative to that of its card, so that
 * tenants of two cards can be compared. */
static int64_t lag_of(const Engine *e, const EngineTenant *t) {
        return t->policy.conserving ? e->virtual_clocks[t->policy.high] - t->account.clock
                                    : account_lag(&t->account, &t->policy);
}

bool pick_is_before(const Engine *e, const EngineTenant *t, const Engine *f, const EngineTenant *u) {
        if (rank_of(t) != rank_of(u))
                return rank_of(t) > rank_of(u);
        return lag_of(e, t) > lag_of(f, u);
}

uint64_t pick_ready_at(const EngineTenant *t, uint64_t now) {
        int64_t missing = (t->policy.high ? 1 : (int64_t) QUANTUM_NS) - account_tokens(&t->account);

        if (t->policy.conserving || missing < 0)
                missing = 0;
        missing = missing > 0 ? missing * POLICY_PPM / (int64_t) t->policy.rate + 1 : 0;
        return max_u64(now + (uint64_t) missing, t->backoff_until);
}

uint64_t pick_earliest(const Engine *e, const EngineTenant *but, bool closing, uint64_t now) {
        uint64_t when = UINT64_MAX;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t != but && is_waiting(t, closing))
                        when = min_u64(when, pick_ready_at(t, now));
        }
        return when;
}
