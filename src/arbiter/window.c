/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "arbiter/overdue.h"
#include "arbiter/split.h"
#include "arbiter/until.h"
#include "arbiter/window.h"

enum { ONE_KERNEL = 1 }; /* as a depth, ns */
enum { FORGIVEN = 2 };   /* windows in a row that nothing was done with */

#define SLACK UINT64_C(250000) /* ns of a window that its owner may say it did not use */
#define REST  UINT64_C(350000) /* ns that a window's work goes on behind it, at least */
/* ns: the pause of who gives no sign of life is an eighth of the time since the last, so much at
 * most. */
#define GONE UINT64_C(250000000)

/* ns, of 5 ms: the change from one window to the next. With a little more charged than there is,
 * those who want all of the card are short of it and have windows by turns, where otherwise each
 * would wait until he is far behind and then have several in a row. */
#define CHANGE UINT64_C(20000)

/* ---- opening ---- */

/* All that a window has room for: its gate launches no more than will be over by then. A conserving
 * one that is alone has no such end, and is to make room soon; with one who comes first about, a
 * single kernel is all there is to wait for. */
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

/* As long as there are tokens for it, to twice a quantum where another one's kernel has kept it
 * waiting. */
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
                        ns = max_u64(ns, since(now, until_end(&e->tenants[i], now)));
        return min_u64(ns, LEAD + LAG);
}

void window_open(Engine *e, uint32_t i, uint64_t now, bool contested) {
        EngineTenant *t = &e->tenants[i];
        uint64_t length = length_of(t, 0), early = min_u64(t->tail, length / 2);

        contested = contested || t->turn.behind; /* what is not used of it is lost */
        t->overdue.late_before += t->turn.behind ? t->late : 0;
        t->state = ENGINE_OPEN;
        t->turn.number = (t->turn.number + 1) & (UINT32_MAX >> 1);
        t->turn.open = true;
        set_depth(e, t, now, contested);
        t->opened = now;
        t->busy = t->says.busy;
        t->unseen = t->says.unseen;
        t->spare = 0;
        t->launched = t->says.launched;
        t->paid = t->late = t->idle_since = t->rested = t->began = t->n_rests = 0;
        t->part = (Part){.rested = t->says.rested, .rests = t->says.rests};
        t->parts = false;
        t->from = now + since(t->lag > 2 * HOP ? 0 : LEAD, still_closing(e, now));
        t->firm = t->from + HOP + length - early;
        t->turn.closes = t->firm;
        if (!contested) /* who is late by a long time may come then, too */
                t->turn.closes = t->terms.conserving ? now + LONE : t->firm + (t->missed > 0 ? LONE : 0);
        e->owner = (int32_t) i;
        advance_clock(e, t);
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

/* Another one has more coming to him than a window, or takes whatever there is: time that is not
 * used is his loss. */
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

/* How late it came to a card on which nobody was; a hop is overhead of all windows. */
static uint64_t lateness(const EngineTenant *t) {
        return since(HOP, t->part.unused);
}

/* Of that, what costs nothing whatever he did before: where nobody waits, nothing is lost but his
 * own next window. */
static uint64_t usual_lateness(const Engine *e, const EngineTenant *t, uint64_t now) {
        if (!has_come(t) || e->owner >= 0 || engine_choose(e, AMONG_CLOSED, now) >= 0)
                return 0;
        return min_u64(lateness(t), LAG);
}

/* And the rest, as far as he used the card before: who is short of a processor is let off, and who
 * only says so gains little. */
static uint64_t forgiven(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t usual = usual_lateness(e, t, now), late = lateness(t);

        return late <= LAG || is_loss(e, t) ? 0 : min_u64(since(usual, late), t->mercy);
}

/* Who has used nothing at all is not believed. Of a window with rests less is held, and the gate
 * sees a little late that each begins. */
static uint64_t slack_of(const EngineTenant *t, uint64_t held, uint64_t busy) {
        if (busy == 0 && held >= ENGINE_QUANTUM / 2)
                return 0;
        if (t->n_rests == 0)
                return SLACK;
        return min_u64(SLACK, 2 * HOP + held / 20) + t->n_rests * (HOP / 4);
}

/* Of what it is charged at most. A window without rests has lost that much between its launch and
 * its first kernel, and at its end; one with rests loses it once for all that it has. */
static uint64_t overhead_of(const Engine *e, const EngineTenant *t, uint64_t had) {
        return min_u64(e->overhead, had / (t->n_rests > 0 ? 20 : 2));
}

/* At least what it had of the card, less what it takes to notice; at most that, with what its
 * processes did where nobody saw them at work, because a gate says of short work only later what it
 * was, and for what it was believed to have rested. Its own word has others' turns in it, and of
 * several processes each has seen all of it pass. Who says that he has used nothing has not rested,
 * either. */
static uint64_t cost_of(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t had = since(usual_lateness(e, t, now) + forgiven(e, t, now), t->part.had);
        uint64_t said = since(t->busy, t->says.busy), busy = since(t->part.turns, said);
        uint64_t unseen = min_u64(t->rested, since(t->unseen, t->says.unseen));
        uint64_t worked = had + (said > 0 ? 0 : t->rested);
        uint64_t least = since(slack_of(t, worked, said) + t->late, worked),
                 most = had + max_u64(unseen, t->part.back) - overhead_of(e, t, had);

        return busy < least ? least : min_u64(busy, max_u64(most, least));
}

/* The shortest tails count: whoever comes too early sees how long it will be, and whoever comes too
 * late has lost it. The rest is learnt from windows that were full and had one process's word for
 * it. */
static void learn(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t said = since(t->busy, t->says.busy), busy = since(t->part.turns, said);
        uint64_t end = t->says.n_active > 1 ? now - 2 * HOP : min_u64(now, until_first(t) + said);
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
        if (t->says.n_active == 1 && busy <= t->part.had && t->part.had - busy < SLACK && !t->parts)
                e->overhead = (15 * e->overhead + t->part.had - busy) / 16;
}

static void charge(Engine *e, EngineTenant *t, uint64_t cost) {
        int64_t more = (int64_t) cost - (int64_t) t->paid;

        split_charge(e, t, more);
        if (more > 0 && t->n_rests > 0) /* it says itself that it worked in them */
                t->turn.granted += (uint64_t) more;
}

/* A window may go on for as long as its owner comes back, so it is charged at each rest. */
void window_rests(Engine *e, EngineTenant *t, uint64_t now) {
        t->n_rests++;
        t->rested_before = t->rested;
        split_leave(t);
        if (has_come(t) && !t->turn.behind)
                charge(e, t, cost_of(e, t, now));
}

/* The rests that it wrote down since the last look, where it might, are as those that were seen.
 * The one that lasts counts from when a ring would have been heard; of those that are over begin
 * and end are told alike. */
void window_hears(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t told = since(t->says.idle != 0 ? HOP * 3 / 4 : 0, t->says.rested),
                 more = min_u64(since(t->part.rested, told), since(t->part.heard, t->part.had));
        uint32_t n = t->says.rests - t->part.rests;

        if (more > 0 && t->turn.alone) {
                split_return(e, t, more);
                t->part.back += more;
                t->part.unused = min_u64(t->part.unused, since(since(t->busy, t->says.busy), t->part.had));
                t->rested += more;
                t->n_rests = max_u32(1, t->n_rests + (uint32_t) min_u64(n, more / HOP));
                t->turn.granted -= min_u64(more, t->turn.granted);
                if (has_come(t))
                        charge(e, t, cost_of(e, t, now));
        }
        t->part.rested = max_u64(t->part.rested, told);
        t->part.rests = t->says.rests;
        t->part.heard = t->part.had;
}

/* ---- the end ---- */

/* Who does nothing with his windows waits for the next one, as long as others want the card:
 * shortly, where anything moves (a program that is late tells at least that a window went by), and
 * ever longer, where nothing does. */
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

/* What it said and what it was charged differ by so much, others' turns beside it included: more
 * that it says of the same work may be that. */
static void settle(EngineTenant *t, uint64_t now) {
        uint64_t busy = since(t->busy, t->says.busy), known = t->paid + t->part.turns;

        t->doubt = busy > known ? busy - known : known - busy;
        t->settled = t->says.busy;
        t->over = now;
}

/* Work of which nobody knew, or that took longer than anybody thought: its gate finds that out when
 * it looks again. The card can have done no more of it since than there was time. */
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
        uint64_t let_off, cost;

        split_trust(t);
        let_off = forgiven(e, t, now);
        cost = cost_of(e, t, now);
        charge(e, t, cost + min_u64(CHANGE, cost / 256));
        t->mercy = min_u64(MERCY, t->mercy - let_off + (has_come(t) ? t->paid / 2 : 0));
        settle(t, now);
        t->patience = min_u64(2 * t->patience, PATIENCE);
        learn(e, t, now);
        note_use(t, now);
        t->state = ENGINE_CLOSED;
}

/* Others go on beside it. What it had until now is charged, and what comes is when it is over. */
static void give_up(Engine *e, EngineTenant *t, uint64_t now) {
        charge(e, t, cost_of(e, t, now));
        t->patience = max_u64(t->patience / 2, 2 * ENGINE_QUANTUM);
        overdue_begin(t, now);
}

/* A window behind work that was late before it: all of its time is charged, and nobody waits for
 * what was launched in it. Who is tied and launches does not hang. */
static void go_on_behind(Engine *e, EngineTenant *t, uint64_t now) {
        split_charge(e, t, (int64_t) t->turn.rest); /* so long what was launched in it may go on */
        t->turn.granted += since(t->opened, now);
        t->turn.behind = false;
        t->moved = now;
        overdue_goes_on(t, t->turn.depth > ONE_KERNEL && t->says.launched != t->launched);
}

static void end_overdue(Engine *e, EngineTenant *t, uint64_t now) {
        overdue_end(e, t, now);
        settle(t, now);
        t->patience = min_u64(2 * t->patience, PATIENCE); /* it has ended, and is paid for */
        t->state = ENGINE_CLOSED;
        t->told = false;
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
                overdue_works(t);
        if (t->state == ENGINE_OVERDUE && is_over(t))
                end_overdue(e, t, now);
        else if (t->state == ENGINE_CLOSING && t->turn.behind)
                go_on_behind(e, t, now);
        else if (t->state == ENGINE_CLOSING && is_over(t))
                over(e, t, until_over(t, now));
        else if (t->state == ENGINE_CLOSING && now >= until_waited(t) &&
                 (is_in_the_way(e, t, now) || now >= engine_behind_from(t)))
                give_up(e, t, now);
}
