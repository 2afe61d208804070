/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "arbiter/pick.h"

/* Ranks, highest first: who comes first and has tokens; who has a cap and the tokens for a window;
 * the conserving; who comes first and has used what it may take from the others. */
enum { RANK_NONE, RANK_SPENT, RANK_CONSERVING, RANK_CAPPED, RANK_FIRST };

static int rank(const EngineTenant *t, int64_t tokens, int64_t enough) {
        if (t->policy.high && tokens > 0)
                return RANK_FIRST;
        if (t->policy.conserving)
                return t->policy.high ? RANK_SPENT : RANK_CONSERVING;
        return tokens >= enough ? RANK_CAPPED : RANK_NONE;
}

/* Tokens for a window. Who had nothing to do a moment ago may soon be done, and does not wait for
 * all of one. */
static int64_t enough(const EngineTenant *t, uint64_t now) {
        return (int64_t) (now < t->brief_idle_until ? QUANTUM_NS / 2 : QUANTUM_NS);
}

static bool is_among(const EngineTenant *t, PickAmong among) {
        if (t->state == ENGINE_OVERRUN)
                return t->policy.gated && pick_backlog_from(t) != UINT64_MAX;
        return (t->state == ENGINE_CLOSED || (t->state == ENGINE_CLOSING && among == PICK_CLOSING)) &&
               t->policy.gated && wants(t);
}

/* Where a kernel may just be long: RUNNING_FIRST_NS, and a quarter of the time that it has been
 * overdue, and four times what it says to be in flight. */
uint64_t pick_backlog_from(const EngineTenant *t) {
        bool late = t->state == ENGINE_OVERRUN;
        uint64_t quarter = late ? since(t->overrun.since, t->progress_at) / 4 : 0,
                 expected = 4 * min_u64(t->report.in_flight, UINT64_MAX / 8);

        if (!t->report.waiter || t->report.drained)
                return UINT64_MAX;
        if (t->report.blocked)
                return t->progress_at +
                       (late && t->overrun.n_backlog_windows > 0 ? BLOCKED_NEXT_NS : BLOCKED_FIRST_NS);
        return t->progress_at + max_u64(RUNNING_FIRST_NS, max_u64(quarter, expected));
}

/* Not before then, whatever it has coming to it. */
static uint64_t not_before(const EngineTenant *t) {
        return t->state == ENGINE_OVERRUN ? pick_backlog_from(t) : t->backoff_until;
}

static bool is_before(const EngineTenant *a, int rank_a, const EngineTenant *b, int rank_b) {
        if (rank_a != rank_b)
                return rank_a > rank_b;
        if (rank_a == RANK_CONSERVING || rank_a == RANK_SPENT)
                return a->account.clock < b->account.clock;
        return account_lag(&a->account, &a->policy) > account_lag(&b->account, &b->policy);
}

int pick_next(const Engine *e, PickAmong among, uint64_t now) {
        int best = -1, best_rank = RANK_NONE;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];
                int r = is_among(t, among) && now >= not_before(t)
                                ? rank(t, account_tokens(&t->account), enough(t, now))
                                : RANK_NONE;

                if (r == RANK_NONE || (best >= 0 && !is_before(t, r, &e->tenants[best], best_rank)))
                        continue;
                best = (int) i;
                best_rank = r;
        }
        return best;
}

bool pick_keeps_owner(const Engine *e, const EngineTenant *owner, int waiting, uint64_t more) {
        EngineTenant after = *owner;
        const EngineTenant *other = waiting >= 0 ? &e->tenants[waiting] : NULL;
        int mine, others;

        account_charge(&after.account, &owner->policy, (int64_t) more, virtual_clock(e, &owner->policy));
        mine = rank(&after, account_tokens(&after.account), (int64_t) QUANTUM_NS / 2);
        if (!other)
                return mine != RANK_NONE;
        others = rank(other, account_tokens(&other->account), (int64_t) QUANTUM_NS);
        account_charge(&after.account, &owner->policy, (int64_t) QUANTUM_NS,
                       virtual_clock(e, &owner->policy));
        return mine != RANK_NONE && is_before(&after, mine, other, others);
}

bool pick_reclaims(const EngineTenant *waiting, const EngineTenant *owner) {
        return owner->policy.conserving && waiting->policy.conserving &&
               owner->policy.high == waiting->policy.high &&
               account_clock_after(&waiting->account, &waiting->policy, QUANTUM_NS) < owner->account.clock;
}

bool pick_lends(const Engine *e, const EngineTenant *t) {
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *o = &e->tenants[i];

                if (o != t && o->policy.gated && o->active && !wants(o) && pick_reclaims(o, t))
                        return true;
        }
        return false;
}

uint64_t pick_earliest(const Engine *e, PickAmong among, uint64_t now) {
        uint64_t when = UINT64_MAX;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];
                int64_t missing;

                if (!is_among(t, among))
                        continue;
                missing = t->policy.conserving
                                  ? 0
                                  : (t->policy.high ? 1 : enough(t, now)) - account_tokens(&t->account);
                missing = missing > 0 ? missing * POLICY_PPM / (int64_t) t->policy.rate + 1 : 0;
                when = min_u64(when, max_u64(now + (uint64_t) missing, not_before(t)));
        }
        return when;
}

uint64_t pick_longest_preopen(const Engine *e) {
        uint64_t lead = PREOPEN_NS;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if ((int32_t) i != e->owner && t->state != ENGINE_FREE && t->policy.gated && wants(t))
                        lead = max_u64(lead, engine_preopen(t));
        }
        return lead;
}
