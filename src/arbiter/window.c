/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "arbiter/window.h"

enum { ONE_KERNEL = 1 }; /* as a depth, ns */

static uint32_t max_u32(uint32_t a, uint32_t b) {
        return a > b ? a : b;
}

/* ---- opening ---- */

/* All that a window has room for: its gate launches no more than will be over by then. A conserving one that is alone has no such end, and is
 * to make room soon; with one who comes first about, a single kernel is all there is to wait for. */
static void set_depth(const Engine *e, EngineTenant *t, uint64_t now, bool contested) {
        bool bounded = contested || !t->terms.conserving;

        t->turn.rest = REST + engine_longest_lead(e) - LEAD;
        t->turn.sharers = t->says.n_active > 0 ? t->says.n_active : 1;
        if (t->turn.behind && !t->says.tied) { /* its kernel may just be long: one more */
                t->turn.depth = ONE_KERNEL;
                t->lent = false;
                return;
        }
        t->turn.depth = bounded ? (ENGINE_QUANTUM + 2 * t->turn.rest) / t->turn.sharers : ENGINE_QUANTUM / 2;
        t->lent = engine_lends(e, t);
        if (t->lent)
                t->turn.depth = ENGINE_QUANTUM / 8 / t->turn.sharers;
        if (!t->terms.high && now < e->high_until)
                t->turn.depth = ONE_KERNEL;
}

/* As long as there are tokens for it, to twice a quantum where another one's kernel has kept it waiting. */
static uint64_t length_of(const EngineTenant *t, int64_t used) {
        int64_t tokens = account_tokens(&t->account) - used;
        int64_t most = (int64_t) ENGINE_QUANTUM * (t->account.arrears > 0 ? 2 : 1);

        if (t->terms.conserving)
                return ENGINE_QUANTUM;
        if (tokens > most)
                return (uint64_t) most;
        return tokens > (int64_t) ENGINE_QUANTUM / 4 ? (uint64_t) tokens : ENGINE_QUANTUM / 4;
}

/* Until the windows before are over. */
static uint64_t still_closing(const Engine *e, uint64_t now) {
        uint64_t ns = 0;

        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state == ENGINE_CLOSING)
                        ns = max_u64(ns, since(now, window_end(&e->tenants[i], now)));
        return min_u64(ns, LEAD + LAG);
}

void window_open(Engine *e, uint32_t i, uint64_t now, bool contested) {
        EngineTenant *t = &e->tenants[i];
        uint64_t length = length_of(t, 0), early = min_u64(t->tail, length / 2);

        contested = contested || t->turn.behind; /* what is not used of it is lost */
        t->late_before += t->turn.behind ? t->late : 0;
        t->state = ENGINE_OPEN;
        t->turn.number = (t->turn.number + 1) & (UINT32_MAX >> 1);
        t->turn.open = true;
        set_depth(e, t, now, contested);
        t->opened = now;
        t->busy = t->says.busy;
        t->spare = 0;
        t->launched = t->says.launched;
        t->paid = t->late = t->beside = t->halved = t->idle_since = t->rested = t->began = t->early = 0;
        t->n_rests = 0;
        t->rests_heard = t->says.rested;
        t->rests_said = t->says.rests;
        t->rests_at = now;
        t->parts = false;
        t->from = now + since(t->lag > 2 * HOP ? 0 : LEAD, still_closing(e, now));
        t->firm = t->from + HOP + length - early;
        t->turn.closes = t->firm;
        if (!contested) /* who is late by a long time may come then, too */
                t->turn.closes = t->terms.conserving ? now + LONE : t->firm + (t->missed > 0 ? LONE : 0);
        e->owner = (int32_t) i;
        advance_clock(e, t);
}

/* While a window lasts, its owner pays for the time as it passes: accounts are always as of now. Granted is by our clock alone, whatever
 * he says. */
void window_charge(Engine *e, uint32_t i, uint64_t ns) {
        EngineTenant *t = &e->tenants[i];

        account_charge(&t->account, &t->terms, (int64_t) ns, clock_of(e, &t->terms));
        t->paid += ns;
        t->turn.used += ns;
        t->turn.granted += ns;
}

void window_extend(Engine *e, uint32_t i, uint64_t now, bool contested) {
        EngineTenant *t = &e->tenants[i];
        bool lone = !contested && (t->terms.conserving || t->terms.rate == POLICY_PPM);
        uint64_t length = lone ? LONE : length_of(t, (int64_t) since(now, t->turn.closes));

        t->parts = true;
        advance_clock(e, t);
        set_depth(e, t, now, contested);
        t->turn.closes = max_u64(t->turn.closes, now) + length;
        t->firm = lone ? now : t->turn.closes;
}

void window_renew(Engine *e, uint32_t i) {
        EngineTenant *t = &e->tenants[i];

        t->turn.number = (t->turn.number + 1) & (UINT32_MAX >> 1);
}

void window_close(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];

        t->state = ENGINE_CLOSING;
        t->turn.open = false;
        t->turn.closes = min_u64(t->turn.closes, now);
        e->owner = -1;
}

/* ---- what it cost ---- */

/* Another one has more coming to him than a window, or takes whatever there is: time that is not used is his loss. */
static bool is_loss(const Engine *e, const EngineTenant *t) {
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *o = &e->tenants[i];

                if (o == t || !o->terms.gated || !wants(o) ||
                    (o->state != ENGINE_CLOSED && o->state != ENGINE_OPEN))
                        continue;
                if (o->terms.conserving || account_tokens(&o->account) >= (int64_t) ENGINE_QUANTUM * 3 / 2)
                        return true;
        }
        return false;
}

/* How late it came, or until now; a hop is overhead of all windows. */
static uint64_t lateness(const EngineTenant *t, uint64_t now) {
        uint64_t from = t->from + t->beside;

        if (!has_come(t))
                return since(from, now);
        return t->began != 0 ? since(from, since(HOP, t->began)) : 0;
}

/* Of that, what costs nothing whatever he did before: where nobody waits, nothing is lost but his own next window. */
static uint64_t usual_lateness(const Engine *e, const EngineTenant *t, uint64_t now) {
        if (!has_come(t) || e->owner >= 0 || engine_choose(e, AMONG_CLOSED, now) >= 0)
                return 0;
        return min_u64(lateness(t, now), since(t->from + t->beside, t->opened + LAG));
}

/* And the rest, as far as he used the card before: who is short of a processor is let off, and who only says so gains little. */
static uint64_t forgiven(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t usual = usual_lateness(e, t, now), late = lateness(t, now);

        return late <= LAG || is_loss(e, t) ? 0 : min_u64(since(usual, late), t->mercy);
}

/* When the card was its own. */
static uint64_t begin_of(const Engine *e, const EngineTenant *t, uint64_t now) {
        return t->from + t->beside + usual_lateness(e, t, now) + forgiven(e, t, now);
}

/* Who has used nothing at all is not believed. Of a window with rests less is held, and the gate sees a little late that each begins. */
static uint64_t slack_of(const EngineTenant *t, uint64_t held, uint64_t busy) {
        if (busy == 0 && held >= ENGINE_QUANTUM / 2)
                return 0;
        if (t->n_rests == 0)
                return SLACK;
        return min_u64(SLACK, 2 * HOP + held / 20) + t->n_rests * (HOP / 4);
}

/* At least the time that it had the card for itself, less its rests and what it takes to notice; at most that time, with its rests, because a
 * gate says of short work only later what it was. Several processes of one tenant share the card, and each has seen all of it pass. */
static uint64_t cost_of(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t held = since(begin_of(e, t, now), now) + t->early, busy = since(t->busy, t->says.busy);
        uint64_t worked = since(busy > 0 ? t->rested : 0, held);
        uint64_t least = since(slack_of(t, worked, busy) + t->late, worked),
                 most = held - min_u64(e->overhead, held / 2);

        return busy < least ? least : min_u64(busy, max_u64(most, least));
}

static uint64_t first_kernel(const EngineTenant *t) {
        return t->began != 0 ? t->began : t->from + HOP;
}

/* The shortest tails count: whoever comes too early sees how long it will be, and whoever comes too late has lost it. The rest is
 * learnt from windows that were full and had one process's word for it. */
static void learn(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t held = since(t->from, now), busy = since(t->busy, t->says.busy);
        uint64_t end = t->says.n_active > 1 ? now - 2 * HOP : min_u64(now, first_kernel(t) + busy);
        uint64_t tail = min_u64(since(t->turn.closes, end), ENGINE_QUANTUM);

        if (t->began != 0)
                t->lag = (7 * t->lag + min_u64(t->began - t->opened, LAG)) / 8;
        if (t->late > 0 || t->n_rests > 0)
                return;
        if (t->says.n_active > 1)
                t->tail = (7 * t->tail + tail) / 8;
        else
                t->tail = tail < t->tail ? tail : t->tail + (tail - t->tail) / 16;
        if (t->began > t->from + 3 * HOP)
                return;
        if (t->says.n_active == 1 && busy <= held && held - busy < SLACK && !t->parts)
                e->overhead = (15 * e->overhead + held - busy) / 16;
}

static void charge(Engine *e, EngineTenant *t, uint64_t cost) {
        int64_t more = (int64_t) cost - (int64_t) t->paid;

        account_charge(&t->account, &t->terms, more, clock_of(e, &t->terms));
        t->turn.used = more >= 0 ? t->turn.used + (uint64_t) more
                                 : t->turn.used - min_u64(t->turn.used, (uint64_t) -more);
        if (more > 0 && t->n_rests > 0) /* it says itself that it worked in them */
                t->turn.granted += (uint64_t) more;
        t->paid = cost;
}

/* A window may go on for as long as its owner comes back, so it is charged at each rest. */
void window_rests(Engine *e, EngineTenant *t, uint64_t now) {
        t->n_rests++;
        t->rested_before = t->rested;
        if (has_come(t) && !t->turn.behind)
                charge(e, t, cost_of(e, t, now));
}

/* Pauses that were written down since the last look, where they might be: they were charged as they passed, and granted. The one that lasts
 * counts from when a ring would have been heard; of those that are over begin and end are told alike. */
void window_hears_rests(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t told = since(t->says.idle != 0 ? HOP * 3 / 4 : 0, t->says.rested),
                 more = min_u64(since(t->rests_heard, told), since(t->rests_at, now));
        uint32_t n = (uint32_t) min_u64(t->says.rests - t->rests_said, more / HOP);

        t->rests_heard = max_u64(t->rests_heard, told);
        t->rests_said = t->says.rests;
        t->rests_at = now;
        if (more == 0 || !t->turn.alone || t->turn.behind)
                return;
        t->n_rests += n / 2;
        t->rested += more;
        t->turn.granted -= min_u64(more, t->turn.granted);
        if (has_come(t))
                charge(e, t, cost_of(e, t, now));
}

/* ---- the end ---- */

/* Who does nothing with his windows waits for the next one, as long as others want the card: shortly, where anything moves (a program that is
 * late tells at least that a window went by), and ever longer, where nothing does. */
static void note_use(EngineTenant *t, uint64_t now) {
        if (has_come(t)) {
                t->empty = 0;
                t->missed -= t->missed > 0;
                return;
        }
        t->empty += t->empty < 10;
        t->missed += t->missed < 16 ? 4 : 0;
        if (t->empty > FORGIVEN) /* it may have been late */
                t->paused_until = now + min_u64(GONE, max_u64(PAUSE, since(t->alive, now) / 8));
}

/* The next one was let in before the end of the one before it. From when it was there each had half of the card; before that it had nothing to
 * pay for, but who is later than LAG only says so. now: when the
 * first of the two was over. */
static void share_overlap(EngineTenant *t, EngineTenant *next, uint64_t now) {
        uint64_t from, there, both;

        next->from = max_u64(next->opened, min_u64(next->from, now - 2 * HOP)); /* earlier than it seemed */
        from = next->from + 3 * HOP;
        there = next->began != 0 ? max_u64(next->began, from) : max_u64(now, from);
        there = min_u64(there, from + LAG);
        both = since(there, now);
        next->early = next->began != 0 ? since(next->began, min_u64(next->from, now)) / 2 : 0;
        next->beside = max_u64(next->beside, since(from, min_u64(there, now)) + both / 2);
        t->beside += since(max_u64(there, t->halved), now) / 2 + next->early;
        t->halved = now; /* of three at once the third has its half from the second */
}

/* When it was noticed that a window was over, or would have been by whoever waited for it. Who does not say it had the card until he was looked at. */
static uint64_t over_at(const EngineTenant *t, uint64_t now) {
        return t->says.over == 0 ? now : min_u64(now, max_u64(t->says.over, t->turn.closes) + HOP * 3 / 4);
}

/* Until when others may say that it was beside them. Who does not say when he was over pays until he is looked at, but what others have of that
 * is his own word, or a window's work. */
static uint64_t beside_until(const EngineTenant *t, uint64_t now) {
        uint64_t worked = first_kernel(t) + since(t->busy, t->says.busy);

        if (!is_over(t))
                return now;
        if (t->says.over == 0 && t->turn.quiet)
                return min_u64(now, max_u64(worked, t->turn.closes + t->turn.rest + HOP));
        return over_at(t, now);
}

/* This one is over or waited for no longer: what it had together with each of the others whose windows are not over yet, whichever of the two
 * was first. So each two of them are asked about once. */
static void share_overlaps(Engine *e, EngineTenant *t, uint64_t now) {
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *o = &e->tenants[i];
                uint64_t end = min_u64(beside_until(t, now), beside_until(o, now));

                if (o->state != ENGINE_OPEN && o->state != ENGINE_CLOSING)
                        continue;
                if (t->opened < o->opened)
                        share_overlap(t, o, end);
                else if (o->opened < t->opened)
                        share_overlap(o, t, end);
        }
}

/* What it said and what it was charged differ by so much: more that it says of the same work may be that. */
static void settle(EngineTenant *t, uint64_t now) {
        uint64_t busy = since(t->busy, t->says.busy);

        t->doubt = busy > t->paid ? busy - t->paid : t->paid - busy;
        t->settled = t->says.busy;
        t->over = now;
}

/* Work of which nobody knew, or that took longer than anybody thought: its gate finds that out when it looks again. The card can have
 * done no more of it since than there was time. */
void window_late(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];
        uint64_t more = since(t->settled, t->says.busy), known = min_u64(more, t->doubt),
                 cost = min_u64(more - known, since(t->over, now) + t->spare),
                 spare = min_u64(cost, t->spare);

        t->settled = t->says.busy;
        t->doubt -= known;
        t->spare -= spare;
        t->over += cost - spare;
        account_charge(&t->account, &t->terms, (int64_t) cost, clock_of(e, &t->terms));
        t->turn.used += cost;
}

static void over(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t let_off;

        share_overlaps(e, t, now);
        let_off = forgiven(e, t, now);
        charge(e, t, cost_of(e, t, now));
        t->mercy = min_u64(MERCY, t->mercy - let_off + (has_come(t) ? t->paid / 2 : 0));
        settle(t, now);
        t->patience = min_u64(2 * t->patience, PATIENCE);
        learn(e, t, now);
        note_use(t, now);
        t->state = ENGINE_CLOSED;
}

/* Others go on beside it. What it had until now is charged, and what comes is when it is over. */
static void give_up(Engine *e, EngineTenant *t, uint64_t now) {
        share_overlaps(e, t, now);
        charge(e, t, cost_of(e, t, now));
        t->patience = max_u64(t->patience / 2, 2 * ENGINE_QUANTUM);
        t->state = ENGINE_OVERDUE;
        t->overdue = now;
        t->hung_from = t->turn.closes;
        t->shared = t->behind = t->late_before = 0;
        t->n_behind = 0;
        t->working = max_u32(t->says.n_working, 1);
        t->busy_before = t->says.busy;
}

/* A window behind work that was late before it: all of its time is charged, and nobody waits for what was launched in it. Who is tied and
 * launches does not hang. */
static void go_on_behind(EngineTenant *t, uint64_t now) {
        if (t->turn.depth > ONE_KERNEL && t->says.launched != t->launched)
                t->hung_from = t->turn.closes;
        t->behind += t->paid;
        t->late = 0; /* it is in what was paid */
        t->n_behind++;
        t->turn.granted += since(t->opened, now);
        t->turn.behind = false;
        t->moved = now;
        t->state = ENGINE_OVERDUE;
}

/* Of the time for which its work may have been on the card: as much as it says to have used itself, however much that is. Who says less may
 * have been stopped: no longer than a kernel takes, for each of its processes. What is not charged it may still find out to have used. */
static uint64_t believed(EngineTenant *t, uint64_t ns) {
        uint64_t said = since(t->busy_before + t->behind, t->says.busy),
                 paid = min_u64(ns, max_u64(said, t->working * (uint64_t) ACCOUNT_DEBT));

        t->spare = ns - paid;
        return paid;
}

static bool others_overdue(const Engine *e, const EngineTenant *t) {
        for (uint32_t i = 0; i < e->n; i++)
                if (&e->tenants[i] != t && e->tenants[i].state == ENGINE_OVERDUE)
                        return true;
        return false;
}

/* Half of the time beside others is its own, and all in which nobody had a window. Of what it says itself that it used beside them the
 * others get that half back which they were charged for: what it pays is what they get. */
static void reconcile(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t held = since(t->overdue + t->late_before + t->late + t->behind, now),
                 beside = min_u64(t->shared, held),
                 said = min_u64(since(t->busy_before + t->behind, t->says.busy), beside);

        t->paid = believed(t, held - beside / 2);
        account_charge(&t->account, &t->terms, (int64_t) t->paid, clock_of(e, &t->terms));
        t->turn.used += t->paid;
        t->paid += t->behind;
        t->busy = t->busy_before;
        settle(t, now);
        t->patience = min_u64(2 * t->patience, PATIENCE); /* it has ended, and is paid for */
        t->state = ENGINE_CLOSED;
        t->told = false;
        if (others_overdue(e, t))
                return;
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *o = &e->tenants[i];
                uint64_t back = min_u64(o->contested, said) / 2;

                if (o == t || o->contested == 0)
                        continue;
                account_refund(&o->account, &o->terms, (int64_t) back);
                o->turn.used -= min_u64(o->turn.used, back);
                said -= min_u64(said, 2 * back);
                o->contested = 0;
        }
}

uint64_t window_deadline(const EngineTenant *t) {
        uint64_t work = min_u64(t->says.in_flight, PATIENCE);

        return t->turn.closes + max_u64(2 * ENGINE_QUANTUM, min_u64(2 * work + ENGINE_QUANTUM, t->patience)) +
               t->late;
}

/* What was launched follows without a gap on what has ended: so the end is known from the beginning, as well as kernels are. */
uint64_t window_end(const EngineTenant *t, uint64_t now) {
        uint64_t latest = now + min_u64(t->says.in_flight, PATIENCE);
        uint64_t end = first_kernel(t) + t->rested + since(t->busy, t->says.busy) +
                       min_u64(t->says.in_flight, PATIENCE);

        if (t->says.drained)
                return now;
        if (t->says.n_active > 1 && t->says.in_flight <= t->turn.depth)
                return min_u64(max_u64(now, t->turn.closes + t->tail), latest);
        if (since(t->opened, now) > LONE)
                return latest;
        return end < now ? now : min_u64(end, latest);
}

/* Whoever waits for nothing else; and a kernel that hangs is reported, whoever waits. */
static bool is_in_the_way(const Engine *e, const EngineTenant *t, uint64_t now) {
        if (since(t->turn.closes, now) >= e->hung)
                return true;
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *o = &e->tenants[i];

                if (o != t && o->terms.gated && wants(o))
                        return true;
        }
        return false;
}

void window_tend(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];

        if (t->state == ENGINE_OVERDUE)
                t->working = max_u32(t->working, t->says.n_working);
        if (t->state == ENGINE_OVERDUE && is_over(t))
                reconcile(e, t, now);
        else if (t->state == ENGINE_CLOSING && t->turn.behind)
                go_on_behind(t, now);
        else if (t->state == ENGINE_CLOSING && is_over(t))
                over(e, t, over_at(t, now));
        else if (t->state == ENGINE_CLOSING && now >= window_deadline(t) &&
                 (is_in_the_way(e, t, now) || now >= engine_behind_from(t)))
                give_up(e, t, now);
}
