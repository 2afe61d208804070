/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/gang/gangs-internal.h"

#include "scheduler/gang/gang_plan.h"

void gangs_init(Gangs *gs, Ledger *ledger, const GangsHooks *hooks) {
        *gs = (Gangs){.ledger = ledger, .hooks = *hooks, .nodes = 1};
}

void gangs_done(Gangs *gs) {
        gang_table_done(&gs->table);
        gs->assembling = NULL;
}

void gangs_tell(Gangs *gs, const Gang *g, const char *reason, const char *note) {
        enum { TOLD_MAX = 16 };
        size_t n = 0;

        for (const GangMember *m = g->members; m && n < TOLD_MAX; m = m->next)
                if (!m->bound && !m->ended && !m->terminating) {
                        gs->hooks.tell(gs->hooks.userdata, m, reason, note);
                        n++;
                }
}

/* ---- the attempt ---- */

void gangs_end_hold(Gangs *gs, GangMember *m, usec_t now) {
        m->held = false;
        gs->held_usec += now - m->held_at;
}

/* Tells waiting pods that the node of the place, which is about to end, gets room. */
void gangs_tell_room(Gangs *gs, const GangMember *m) {
        if (m->place && gs->hooks.on_room)
                gs->hooks.on_room(gs->hooks.userdata, ledger_node_name(grant_node(m->place)));
}

void gangs_end_place(Gangs *gs, GangMember *m) {
        gangs_tell_room(gs, m);
        m->place = grant_free(m->place);
}

void gangs_end_places(Gangs *gs, Gang *g) {
        for (GangMember *m = g->members; m; m = m->next)
                gangs_end_place(gs, m);
}

void gangs_tell_settled(const Gangs *gs) {
        if (gs->hooks.on_settled)
                gs->hooks.on_settled(gs->hooks.userdata);
}

void gangs_give_back(Gangs *gs, Gang *g, const char *why, usec_t now) {
        bool planned = false;

        gs->inside = true;
        for (GangMember *m = g->members; m; m = m->next) {
                if (!m->held)
                        continue;
                gangs_end_hold(gs, m, now);
                gs->hooks.give_back(gs->hooks.userdata, str_from(m->uid), why);
        }
        gs->inside = false;
        for (const GangMember *m = g->members; m; m = m->next)
                planned |= m->place != NULL;
        gangs_end_places(gs, g);
        gang_table_count(g);
        if (gs->assembling != g)
                return;
        gs->assembling = NULL;
        if (!planned)
                gangs_tell_settled(gs);
}

static usec_t doubled_wait(usec_t first, unsigned times) {
        usec_t wait = first;

        for (unsigned i = 1; i < times && wait < GANGS_BACKOFF_CAP; i++)
                wait *= 2;
        return wait < GANGS_BACKOFF_CAP ? wait : GANGS_BACKOFF_CAP;
}

usec_t gangs_backoff(unsigned failures) {
        return doubled_wait(GANGS_BACKOFF, failures);
}

void gangs_give_up(Gangs *gs, Gang *g, usec_t now) {
        gs->attempts_failed++;
        g->failures++;
        g->retry = now + gangs_backoff(g->failures);
        gang_table_set_state(g, GANG_BACKOFF, now);
        gangs_give_back(gs, g, g->why, now);
        gangs_tell(gs, g, REASON_GANGS_WAITING, g->why);
        gangs_settle(gs, g, now);
}

void gangs_wake(Gangs *gs, GangMember *m, usec_t now) {
        m->answered = false;
        if (m->waking)
                return;
        m->woken = now;
        m->wakes++;
        m->refused = false;
        m->waking = true;
        gs->hooks.wake(gs->hooks.userdata, m);
}

/* How well the node of a place that ended suits a member that filter refused; below 2: not at all.
 * A member that was offered the node is preferred, then one of the kind that had the place. It must
 * be woken because kube-scheduler would not ask again by itself. */
static unsigned suits_node(const GangMember *m, const GangMember *freed, const LedgerNode *node) {
        if (!gang_table_is_ready(m) || gang_table_has_failed(m) || !m->refused || m->place || !m->request)
                return 0;
        return 2 * gang_plan_fit(m, node) + (m->where == freed->where && m->kind == freed->kind);
}

static void wake_for_place(Gangs *gs, const GangMember *freed, const LedgerNode *node, usec_t now) {
        GangMember *best = NULL;
        unsigned most = 1, n;

        for (GangMember *m = freed->gang->members; m; m = m->next)
                if ((n = suits_node(m, freed, node)) > most) {
                        best = m;
                        most = n;
                }
        if (best)
                gangs_wake(gs, best, now);
}

void gangs_fail_member(Gangs *gs, GangMember *m, const char *why, usec_t now) {
        Gang *g = m->gang;
        const LedgerNode *freed = m->place ? grant_node(m->place) : NULL;

        m->failed = g->attempt;
        gangs_end_place(gs, m);
        gang_table_count(g);
        if (!gang_table_can_succeed(g)) {
                (void) snprintf(g->why, sizeof g->why, "%s", why);
                gangs_give_up(gs, g, now);
        } else if (freed)
                wake_for_place(gs, m, freed, now);
}

void gangs_clear_failure(GangMember *m) {
        m->failed = 0;
        m->doubtful = false;
}

bool gangs_may_wake_again(const GangMember *m, usec_t now) {
        return m->woken == 0 || now >= m->woken + doubled_wait(GANGS_WAKE_AGAIN, m->wakes);
}

void gangs_note_asked(Gangs *gs, usec_t now) {
        gs->active = now;
        gs->asked = now;
}

/* kube-scheduler does not wait for a Bind longer than its httpTimeout, and all Bindings must be
 * written by then. So an attempt ends earlier when they need more than the time that is left. */
#define TIME_LEFT    (10 * USEC_PER_SEC)
#define POST_BINDING (10 * USEC_PER_MSEC) /* guess: a slow API server */

static usec_t time_of_attempt(const Gang *g) {
        usec_t post = (g->count.min - gang_table_n_bound(g)) * POST_BINDING;

        return post > TIME_LEFT ? GANGS_ATTEMPT + TIME_LEFT - post : GANGS_ATTEMPT;
}

void gangs_begin(Gangs *gs, Gang *g, usec_t now) {
        char note[GANGS_WHY_MAX];

        g->attempt++;
        g->planned = false;
        g->until = now + time_of_attempt(g);
        g->why[0] = '\0';
        gs->assembling = g;
        gangs_note_asked(gs, now);
        gang_table_set_state(g, GANG_ASSEMBLING, now);
        for (GangMember *m = g->members; m; m = m->next) {
                m->wakes = 0; /* gangs_backoff() makes later attempts rarer instead */
                if (gang_table_is_ready(m) && !m->released)
                        gangs_wake(gs, m, now);
        }
        gang_words_say(g, note, ": placing %u members, %u must be bound; attempt %llu", g->count.ready,
                       g->count.min, (unsigned long long) g->attempt);
        gangs_tell(gs, g, REASON_GANGS_ASSEMBLING, note);
}

/* Enough members are held or bound: all held Binds are posted. Places of the other members stay
 * until g->until. */
static void release_gang(Gangs *gs, Gang *g, usec_t now) {
        bool cards = false;

        gs->attempts_satisfied++;
        gs->assembling = NULL;
        gang_table_set_state(g, GANG_SATISFIED, now);
        gs->inside = true;
        for (GangMember *m = g->members; m; m = m->next) {
                if (!m->held)
                        continue;
                gangs_end_hold(gs, m, now);
                m->released = true;
                cards |= m->request != NULL;
                gs->hooks.release(gs->hooks.userdata, str_from(m->uid));
        }
        gs->inside = false;
        gang_table_count(g);
        if (!cards)
                gangs_tell_settled(gs);
}

/* ---- the states ---- */

static void settle_assembling(Gangs *gs, Gang *g, usec_t now) {
        if (!gang_table_is_contradictory(g) && gang_table_n_bound(g) + g->count.held >= g->count.min)
                release_gang(gs, g, now);
        else if (gang_table_is_contradictory(g) || !gang_table_has_enough(g)) {
                gs->attempts_failed++;
                gang_table_set_state(g, GANG_WAITING, now);
                gang_words_explain(g, g->why);
                gangs_give_back(gs, g, g->why, now);
        } else
                return;
        gangs_settle(gs, g, now);
}

static GangState state_of(const Gang *g, usec_t now) {
        if (gang_table_is_free(g) || (gang_table_n_bound(g) >= g->count.min && !g->count.min_wrong) ||
            g->whole)
                return GANG_SATISFIED;
        if (g->state == GANG_BACKOFF && now < g->retry && gang_table_has_enough(g))
                return GANG_BACKOFF;
        if (gang_table_n_bound(g) > 0)
                return GANG_REPAIR;
        return gang_table_has_enough(g) && !gang_table_is_contradictory(g) ? GANG_READY : GANG_WAITING;
}

/* Pods that come later under the same name are a new round; members of this round no longer
 * count. */
static void end_round(Gang *g) {
        g->whole = false;
        g->round++;
        gang_table_count(g);
}

void gangs_settle(Gangs *gs, Gang *g, usec_t now) {
        GangState state;

        if (gs->inside)
                return;
        if (g->count.bound > 0 && gang_table_n_bound(g) - g->count.released >= g->count.min) {
                g->whole = true;
                g->failures = 0;
        }
        if (g->count.bound + g->count.released == 0 && (g->whole || g->count.done > 0))
                end_round(g);
        if (g->state == GANG_ASSEMBLING) {
                settle_assembling(gs, g, now);
                return;
        }
        state = state_of(g, now);
        if (state != GANG_SATISFIED && g->state == GANG_SATISFIED)
                gangs_end_places(gs, g);
        gang_table_set_state(g, state, now);
}

/* ---- places ---- */

const Grant *gangs_place(const Gangs *gs, Str uid) {
        const GangMember *m = gang_table_find(&gs->table, uid);

        return m ? m->place : NULL;
}

void gangs_drop_place(Gangs *gs, Str uid) {
        GangMember *m = gang_table_find(&gs->table, uid);

        if (m)
                m->place = grant_free(m->place);
}

const Grant *gangs_place_on(const Gangs *gs, Str uid, const LedgerNode *node) {
        const GangMember *m = gang_table_find(&gs->table, uid);

        return m && m->gang->state == GANG_ASSEMBLING ? gang_plan_place_on(m, node) : NULL;
}

bool gangs_is_unbound(const Gangs *gs, Str uid) {
        const GangMember *m = gang_table_find(&gs->table, uid);

        return m && m->gang->state != GANG_SATISFIED && !m->bound;
}

bool gangs_waits(const Gangs *gs, Str uid) {
        const GangMember *m = gang_table_find(&gs->table, uid);

        return m && m->gang->state != GANG_SATISFIED;
}
