/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/engine.h"

#include <string.h>

#include "arbiter/split.h"
#include "arbiter/until.h"
#include "arbiter/window.h"

#define ON_TIME UINT64_C(200000) /* ns: nobody is called to the microsecond */

/* ---- tenants ---- */

void engine_init(Engine *e, uint64_t now) {
        memset(e, 0, sizeof *e);
        e->owner = -1;
        e->now = e->asked = now;
        e->overhead = 2 * HOP;
        e->hung = ENGINE_HUNG;
}

int engine_add(Engine *e, uint64_t now, const Terms *terms, uint32_t number, bool open) {
        uint32_t i = 0;
        EngineTenant *t;

        while (i < e->n && e->tenants[i].state != ENGINE_FREE)
                i++;
        if (i == ENGINE_TENANTS)
                return -1;
        e->n += i == e->n;
        t = &e->tenants[i];
        *t = (EngineTenant){
                .state = open ? ENGINE_CLOSING : ENGINE_CLOSED,
                .terms = *terms,
                .says = {.drained = !open},
                .turn = {.gated = terms->gated, .number = number & (UINT32_MAX >> 1), .closes = now},
                .opened = now,
                .from = now,
                .over = now,
                .apart_over = now,
                .alive = now,
                .mercy = MERCY,
                .patience = PATIENCE};
        account_init(&t->account, terms, clock_of(e, terms));
        return (int) i;
}

/* Who is let go has no window, only work. Who is held again may have work on the card that nobody has counted: the others wait for
 * it as for the end of a window. */
static void hold_or_let_go(Engine *e, uint32_t i) {
        EngineTenant *t = &e->tenants[i];

        if (e->owner == (int32_t) i)
                e->owner = -1;
        t->state = t->terms.gated ? ENGINE_CLOSING : ENGINE_CLOSED;
        t->turn.open = t->turn.behind = false;
        t->turn.number = (t->turn.number + 1) & (UINT32_MAX >> 1);
        t->turn.closes = t->opened = t->from = e->now;
        t->busy = t->says.busy;
        t->paid = t->late = t->doubt = t->began = t->idle_since = t->rested = t->n_rests = 0;
        t->part = (Part){0};
        t->unseen = t->says.unseen;
        t->settled = t->says.busy;
        t->over = e->now;
        t->turn.gated = t->terms.gated;
}

void engine_set(Engine *e, uint32_t i, const Terms *terms) {
        EngineTenant *t = &e->tenants[i];
        Terms before = t->terms;

        t->terms = *terms;
        if (terms->gated != t->turn.gated)
                hold_or_let_go(e, i);
        if (terms->conserving != before.conserving || terms->high != before.high)
                account_convert(&t->account, terms, clock_of(e, terms));
        else if (terms->weight != before.weight)
                account_weigh_anew(&t->account, &before, terms, clock_of(e, terms));
}

void engine_remove(Engine *e, uint32_t i) {
        if (e->owner == (int32_t) i)
                e->owner = -1;
        e->tenants[i] = (EngineTenant){.state = ENGINE_FREE};
        while (e->n > 0 && e->tenants[e->n - 1].state == ENGINE_FREE)
                e->n--;
}

/* Who has work in flight and has not begun, or will, began when he could. */
static void note_begin(EngineTenant *t, const EngineSays *says) {
        uint64_t began = says->began;

        if (began == 0 && says->in_flight > 0)
                began = t->opened;
        if (began != 0 && (t->began == 0 || began < t->began))
                t->began = max_u64(t->opened, began);
}

/* Of processes that were silent beside its windows, all of them no more than there was time for; and of one that is no more, nothing is to
 * be told. */
static void note_apart(const Engine *e, EngineTenant *t, const EngineSays *says, uint64_t now) {
        uint64_t from = max_u64(t->apart_over, t->says.stuck),
                 more = min_u64(since(t->says.apart, says->apart), since(from, now));

        t->apart_over = from + more;
        account_charge(&t->account, &t->terms, (int64_t) more, clock_of(e, &t->terms));
        t->turn.used += more;
        if (says->stuck == 0 && !is_overdue(t))
                t->told = false;
}

/* Nobody has looked for so long that the gates kept to their percentages by themselves. */
static bool was_away(const Engine *e, uint64_t now) {
        return since(e->now, now) > TURN_AWAY_NSEC;
}

void engine_says(Engine *e, uint64_t now, uint32_t i, const EngineSays *says) {
        EngineTenant *t = &e->tenants[i];
        uint64_t busy = max_u64(says->busy, t->says.busy), over = says->over,
                 rested = max_u64(says->rested, t->says.rested);

        if (says->life != t->says.life) {
                t->alive = now;
                t->paused_until = min_u64(t->paused_until, now + PAUSE);
        }
        if (was_away(e, now))
                t->apart_over = now;
        note_apart(e, t, says, now);
        if (says->launched != t->says.launched || busy != t->says.busy || !says->waits)
                t->moved = now;
        if (!t->says.drained) /* as we have seen */
                over = over != 0 ? max_u64(over, t->said) : 0;
        t->says = *says;
        t->says.busy = busy;
        t->says.rested = rested;
        t->says.over = over;
        t->said = now;
        if (t->state == ENGINE_OPEN || t->state == ENGINE_CLOSING)
                note_begin(t, says);
        if (t->state == ENGINE_CLOSED && t->terms.gated && !was_away(e, now))
                window_late(e, i, now);
}

bool engine_looks(const Engine *e, uint32_t i, uint64_t now) {
        const EngineTenant *t = &e->tenants[i];

        switch (t->state) {
        case ENGINE_OPEN:
        case ENGINE_CLOSING:
        case ENGINE_OVERDUE:
                return true;
        case ENGINE_CLOSED:
                return wants(t) && since(t->said, now) > 10 * GRACE;
        default:
                return false;
        }
}

/* ---- time ---- */

/* Its work keeps the card from the others, for longer than a window. */
static bool stalls(const EngineTenant *t, uint64_t now) {
        return t->state == ENGINE_CLOSING && now > t->turn.closes + ENGINE_QUANTUM;
}

static unsigned count_stalling(const Engine *e, uint64_t now) {
        unsigned n = 0;

        for (uint32_t i = 0; i < e->n; i++)
                n += stalls(&e->tenants[i], now);
        return n;
}

static bool is_closing(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state == ENGINE_CLOSING)
                        return true;
        return false;
}

/* A window is open in which something is done, or goes on behind its end. */
static bool is_running(const EngineTenant *t) {
        return (t->state == ENGINE_OPEN || t->state == ENGINE_CLOSING) && !rests(t);
}

static bool is_taken(const Engine *e) {
        return (e->owner >= 0 && is_running(&e->tenants[e->owner])) || is_closing(e);
}

/* Those who are overdue and whoever has a window take turns, by contexts; of the one with the window one is counted. */
static uint64_t count_turns(const Engine *e) {
        uint64_t n = is_taken(e);

        for (uint32_t i = 0; i < e->n; i++)
                n += e->tenants[i].state == ENGINE_OVERDUE ? split_contexts(e->tenants[i].working) : 0;
        return n;
}

/* What an overdue one does beside others is theirs, too: both sides count that time, also of a window that goes on. What it will be charged for
 * it counts as granted, as long as it says that it has work there, and that is not told of as a kernel that hangs: who never says its end has
 * nothing of that. Of several at once each counts all of it, so that nobody is accused of what he had. */
static void pass_overdue(Engine *e, uint64_t passed, uint64_t now) {
        bool others = is_taken(e), any = split_is_contested(e, NULL);
        uint64_t n = count_turns(e);

        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];

                if (!any)
                        t->contested = 0;
                if (t->state != ENGINE_OVERDUE)
                        continue;
                t->shared += passed - passed * split_contexts(t->working) / n;
                if (t->says.in_flight > 0 && since(t->overdue, now) < e->hung)
                        t->turn.granted += others ? passed / 2 : passed;
        }
}

/* What goes from one window to the next is lost for all, and by all alike. */
static bool is_overcommitted(const Engine *e) {
        bool any = false;

        if (!is_taken(e))
                return false;
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t->state == ENGINE_FREE || !t->terms.gated || t->terms.conserving || !t->awake)
                        continue;
                if (account_lag(&t->account, &t->terms) < ACCOUNT_FULL)
                        return false;
                any = true;
        }
        return any;
}

static void wake_or_sleep(Engine *e, EngineTenant *t, uint64_t now) {
        if (!wants(t) || rests(t))
                t->brief_until = now + BRIEF;
        if (wants(t)) {
                if (!t->awake)
                        account_wake(&t->account, &t->terms, clock_of(e, &t->terms));
                t->awake = true;
                t->active_until = now + GRACE;
                if (t->terms.high)
                        e->high_until = now + RECENT;
        } else if (now >= t->active_until && t->state == ENGINE_CLOSED) {
                t->awake = false;
                t->empty = 0;
                t->paused_until = 0;
        }
}

/* Late: nobody looked at windows that were to be looked at. Their owners are not charged for it. */
static void pass_time(Engine *e, uint64_t now) {
        uint64_t passed = now - e->now, late = since(e->asked + ON_TIME, now);
        unsigned stalling = count_stalling(e, now);
        bool full = is_overcommitted(e);

        pass_overdue(e, passed, now);
        split_time(e, now);
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];
                AccountTime how = stalling > stalls(t, now) ? ACCOUNT_STALLED : ACCOUNT_WANTS;

                if (t->state == ENGINE_FREE)
                        continue;
                if (!full || !t->awake)
                        account_pass(&t->account, &t->terms, passed, t->awake ? how : ACCOUNT_IDLE);
                if (rests(t))
                        t->rested += passed;
                else if (is_running(t)) /* by our clock alone, whatever he says */
                        t->turn.granted += since(e->now, min_u64(now, until_over(t, now)));
                if (t->state != ENGINE_CLOSED && !rests(t))
                        t->late += min_u64(late, since(t->opened, now));
                wake_or_sleep(e, t, now);
        }
        e->now = now;
}

/* What was used meanwhile is what one may use without an arbiter, so nobody pays for it, and nobody earns. There may be work of all of them
 * on the card, as for a new arbiter: who has none says so at once. A kernel that does not end goes on not ending. */
static void come_back(Engine *e, uint64_t now) {
        uint64_t away = now - e->now;

        e->now = now;
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];

                if (t->state == ENGINE_FREE)
                        continue;
                if (t->state == ENGINE_OVERDUE)
                        t->late += away;
                else
                        hold_or_let_go(e, i);
                wake_or_sleep(e, t, now);
        }
}

/* ---- the open window ---- */

/* It goes on, or its window is over all the same. Where another one is kept from the card meanwhile it is charged for a short rest. */
static void end_rest(EngineTenant *t, int waiting) {
        uint64_t held;

        if (t->idle_since == 0)
                return;
        held = waiting >= 0 ? min_u64(t->rested - t->rested_before, GAP) : 0;
        t->part.had += held;
        t->rested -= held;
        t->idle_since = 0;
}

/* For longer than it takes to launch the next kernel when one has ended. */
static bool is_idle(Engine *e, EngineTenant *t, int waiting, uint64_t now) {
        uint64_t from = t->says.idle != 0 ? min_u64(max_u64(t->says.idle, t->opened), now) : now;

        if (wants(t) || t->says.in_flight > 0 || t->said < t->opened) {
                end_rest(t, waiting);
                return false;
        }
        if (t->idle_since == 0 && t->says.idle != 0 && t->turn.alone && waiting < 0)
                return now - from >= GAP; /* it writes that down: window_hears() */
        if (t->idle_since == 0) {
                t->idle_since = from;
                window_rests(e, t, now);
        }
        return now - t->idle_since >= GAP;
}

/* It was let in, and does nothing. */
static bool is_absent(const EngineTenant *t, uint64_t now) {
        return since(t->opened, now) >= ABSENT && t->said > t->opened && !has_come(t);
}

/* A launch waits for room in it, and may be what those wait for that are in flight. */
static bool is_stuck_in(const EngineTenant *t, uint64_t now) {
        return !t->turn.behind && t->terms.gated && t->says.in_flight > 0 && now >= engine_behind_from(t) &&
               since(t->opened, now) >= TIED_FIRST;
}

/* Nothing of it moves: a window that goes on for as long as a kernel hangs in it would never be late. */
static bool stands_still(const Engine *e, const EngineTenant *t, uint64_t now) {
        return t->says.in_flight > 0 && since(max_u64(t->alive, t->opened), now) >= min_u64(STILL, e->hung);
}

static bool may_go_on(const EngineTenant *t, uint64_t now) {
        return now + HOP / 2 < t->turn.closes; /* later it has closed by itself, or might have */
}

/* So long before the end of a window whoever is next now is let in. */
static uint64_t lead_of(const Engine *e, int next) {
        return next >= 0 ? engine_lead(&e->tenants[next]) : engine_longest_lead(e);
}

/* And a little before that it is said whether it goes on. */
static uint64_t margin_of(const Engine *e, int next) {
        return MARGIN + lead_of(e, next) - LEAD;
}

static void tend_owner(Engine *e, uint64_t now) {
        uint32_t i = (uint32_t) e->owner;
        EngineTenant *t = &e->tenants[i];
        int waiting = engine_choose(e, AMONG_CLOSED, now);
        bool idle, keeps;

        window_hears(e, t, now);
        idle = is_idle(e, t, waiting, now) || (waiting >= 0 && is_absent(t, now));
        if (t->says.ended && may_go_on(t, now))
                window_renew(e, i);
        t->idles = idle || (t->idles && now < t->turn.closes);
        keeps = t->terms.gated && !idle && !t->turn.behind && !is_absent(t, now) &&
                !stands_still(e, t, now) && engine_keeps(e, t, waiting, 0);
        if (is_stuck_in(t, now)) {
                window_close(e, i, now);
                return;
        }
        if (idle && waiting >= 0) {
                window_close(e, i, now);
                return;
        }
        if (waiting >= 0 && !keeps &&
            (now >= t->firm || (e->tenants[waiting].terms.high && !t->terms.high) ||
             (t->lent && engine_reclaims(&e->tenants[waiting], t)))) {
                end_rest(t, waiting);
                window_close(e, i, now);
                return;
        }
        if (waiting >= 0 && !keeps)
                t->turn.closes = min_u64(t->turn.closes, t->firm);
        if (keeps && may_go_on(t, now) && now + margin_of(e, waiting) >= t->turn.closes)
                window_extend(e, i, now, waiting >= 0);
        if (now < t->turn.closes)
                return;
        end_rest(t, waiting);
        window_close(e, i, now);
}

/* ---- the next one ---- */

/* Beside a window that is about to end: what is left of it keeps the card busy while the next one's owner gets the word. */
static bool may_open(const Engine *e, uint64_t now, const EngineTenant *next) {
        uint64_t lead = engine_lead(next);
        bool high = next->terms.high;
        unsigned closing = 0;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t->state != ENGINE_CLOSING)
                        continue;
                if (!high &&
                    (now + lead + HOP / 5 < until_end(t, now) || t->said < t->turn.closes || ++closing > 1))
                        return false;
        }
        return true;
}

static void open_next(Engine *e, uint64_t now) {
        int i = engine_choose(e, AMONG_CLOSED, now), second;

        if (i < 0 || !may_open(e, now, &e->tenants[i]))
                return;
        e->tenants[i].turn.behind = e->tenants[i].state == ENGINE_OVERDUE;
        e->tenants[i].state = ENGINE_OPEN; /* to see who else waits */
        second = engine_choose(e, AMONG_CLOSING, now);
        window_open(e, (uint32_t) i, now,
                    second >= 0 || engine_ripens(e, AMONG_CLOSING, now) < now + ENGINE_QUANTUM);
}

/* ---- when to come again ---- */

/* With nobody in haste the bell tells, and this is for bells that do not come. */
static uint64_t without_bell(const EngineTenant *t, uint64_t now, bool haste) {
        uint64_t first = t->turn.closes + t->tail + (haste ? 3 * HOP : START);
        uint64_t again = now + HOP + since(t->turn.closes, now) / (haste ? 4 : 2);

        return until_waited(t) > now ? min_u64(until_waited(t), max_u64(first, again)) : again;
}

/* Whoever has work again rings, and so does anybody else who wants the card. */
static uint64_t after_rest(const Engine *e, const EngineTenant *t, int waiting, uint64_t now) {
        uint64_t gone = t->idle_since + GAP, ripe = engine_ripens(e, AMONG_CLOSING, now);

        if (waiting >= 0) /* later there is still one before that one to wait for */
                return min_u64(t->turn.closes, gone > now ? gone : now + LOOK);
        return min_u64(t->turn.closes, max_u64(max_u64(ripe, gone), now + LEAD / 4));
}

static uint64_t after_owner(const Engine *e, uint64_t now) {
        const EngineTenant *t = &e->tenants[e->owner];
        int waiting = engine_choose(e, AMONG_CLOSING, now);
        uint64_t closes = t->turn.closes, ripe = engine_ripens(e, AMONG_CLOSING, now),
                 end = closes + since(lead_of(e, waiting), min_u64(t->tail, t->turn.rest));
        uint64_t next = max_u64(max_u64(end, waiting < 0 ? ripe : 0), now + LEAD / 4);

        if (waiting < 0) /* who has drained by then has rung */
                next = min_u64(next, without_bell(t, now, true));

        if (rests(t) || (t->turn.alone && t->says.idle != 0))
                return after_rest(e, t, waiting, now);
        if (!stands_still(e, t, now) && engine_keeps(e, t, waiting, since(now, closes)))
                next = since(margin_of(e, waiting), closes);
        if (ripe > now && t->firm < closes) /* it goes on only as long as nobody waits */
                next = min_u64(next, max_u64(ripe, t->firm));
        if (t->began == 0 && t->lag > 2 * HOP && now < t->opened + t->lag / 2)
                next = min_u64(next,
                               t->opened + t->lag / 2); /* who says that he is late has nothing in flight */
        if ((t->idles && !t->turn.alone) || (t->empty > 0 && t->says.busy == t->busy))
                next = min_u64(next, now + LOOK);
        return next;
}

static uint64_t after_closing(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t deadline = until_waited(t), end = since(engine_longest_lead(e), until_end(t, now)),
                 ripe = engine_ripens(e, AMONG_CLOSED, now);
        int next = engine_choose(e, AMONG_CLOSED, now);

        if (deadline <= now)
                deadline = UINT64_MAX; /* nobody waits for its end, so it may take as long as it does */
        if (e->owner >= 0)             /* seen with the end of the other one's */
                return deadline;
        if (ripe > now)
                return min_u64(without_bell(t, now, true), max_u64(ripe, end));
        if (end <= now && next >= 0 && t->says.n_active == 1) /* one process's word is good enough */
                end = since(engine_lead(&e->tenants[next]), until_end(t, now));
        if (end > now)
                return min_u64(deadline, end);
        return min_u64(deadline, now + LEAD / 2 + since(t->turn.closes, now) / 8);
}

static uint64_t next_call(const Engine *e, uint64_t now) {
        uint64_t next = now + min_u64(e->hung, ENGINE_HUNG);

        if (e->owner >= 0)
                next = after_owner(e, now);
        else if (!is_closing(e))
                next = min_u64(next, max_u64(engine_ripens(e, AMONG_CLOSED, now), now + LEAD / 4));
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t->state == ENGINE_CLOSING)
                        next = min_u64(next, after_closing(e, t, now));
                else if (t->state == ENGINE_OVERDUE)
                        next = min_u64(next, now + min_u64(LOOK + since(t->overdue, now) / 8,
                                                           t->says.waits ? TIED_NEXT : UINT64_MAX));
        }
        return max_u64(next, now + 1);
}

/* Since when work of it is late: all of it, or of a process that is left out. 0: none is. */
static uint64_t stuck_since(const EngineTenant *t) {
        if (is_overdue(t) && t->says.in_flight > 0)
                return t->hung_from;
        return t->state != ENGINE_FREE ? t->says.stuck : 0;
}

static bool is_stuck(const EngineTenant *t) {
        return is_overdue(t) || stuck_since(t) != 0;
}

/* Somebody's kernel was told of, and is not over. */
static bool is_blamed(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (is_stuck(&e->tenants[i]) && e->tenants[i].told)
                        return true;
        return false;
}

/* Nobody else has work on the card, or could have before its window closes, whether it rests or not. */
static bool is_alone(const Engine *e, const EngineTenant *t, uint64_t now) {
        return t->state == ENGINE_OPEN && t->says.n_rows <= 1 && !is_closing(e) &&
               !split_is_contested(e, NULL) && engine_choose(e, AMONG_CLOSING, now) < 0 &&
               engine_ripens(e, AMONG_CLOSING, now) >= t->turn.closes;
}

static void hush(Engine *e, uint64_t now) {
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];

                t->turn.quiet = e->owner >= 0 && t->state == ENGINE_CLOSING;
                t->turn.alone = is_alone(e, t, now);
        }
}

uint64_t engine_step(Engine *e, uint64_t now) {
        int32_t owner;

        now = max_u64(now, e->now);
        if (was_away(e, now))
                come_back(e, now);
        else
                pass_time(e, now);
        owner = e->owner;
        if (is_blamed(e))
                e->blamed = now;
        for (uint32_t i = 0; i < e->n; i++)
                window_tend(e, i, now);
        if (owner >= 0) {
                tend_owner(e, now);
                window_tend(e, (uint32_t) owner, now);
        }
        if (e->owner < 0)
                open_next(e, now);
        hush(e, now);
        e->asked = next_call(e, now);
        return e->asked;
}

/* -1: nobody is overdue. */
static int longest_overdue(const Engine *e) {
        int longest = -1;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (stuck_since(t) != 0 &&
                    (longest < 0 || stuck_since(t) < stuck_since(&e->tenants[longest])))
                        longest = (int) i;
        }
        return longest;
}

static bool tell(Engine *e, uint32_t i, uint64_t since_, EngineEvent *ret) {
        EngineTenant *t = &e->tenants[i];

        *ret = (EngineEvent){.tenant = i, .since = since_, .part = !is_overdue(t), .again = t->told};
        t->told = true;
        t->told_at = e->now;
        e->blamed = e->now;
        return true;
}

bool engine_event(Engine *e, EngineEvent *ret) {
        int i = is_blamed(e) ? -1 : longest_overdue(e);
        uint64_t begun = i < 0 ? 0 : max_u64(stuck_since(&e->tenants[i]), e->blamed);

        for (uint32_t k = 0; i < 0 && k < e->n; k++)
                if (e->tenants[k].told && stuck_since(&e->tenants[k]) != 0 &&
                    since(e->tenants[k].told_at, e->now) >= e->hung)
                        return tell(e, k, stuck_since(&e->tenants[k]), ret);
        if (i < 0 || since(begun, e->now) < e->hung)
                return false;
        return tell(e, (uint32_t) i, begun, ret);
}
