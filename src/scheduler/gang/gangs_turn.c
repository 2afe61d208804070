/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/gang/gangs-internal.h"

#include "scheduler/gang/gang_plan.h"

/* ---- the turn ---- */

/* What fits_cluster() depends on, as a hash: the nodes, and the members that are missing. */
static uint64_t hash_question(const Gangs *gs, const Gang *g) {
        const uint64_t from[] = {gs->nodes, g->count.min - gang_table_n_bound(g), g->count.kinds};

        return str_hash64((Str){(const char *) from, sizeof from}, 0) | 1;
}

/* Whether the gang may begin an attempt by all but the size of the cluster. */
static bool may_begin(const Gangs *gs, const Gang *g, usec_t now) {
        return (g->state == GANG_READY || g->state == GANG_REPAIR) && gang_table_has_enough(g) &&
               !gang_table_is_contradictory(g) && now >= g->retry &&
               !(g->too_large && g->judged == hash_question(gs, g));
}

static const char *oldest_of(const Gang *g) {
        const char *oldest = g->members->created;

        for (const GangMember *m = g->members; m; m = m->next)
                if (strcmp(m->created, oldest) < 0)
                        oldest = m->created;
        return oldest;
}

/* Gangs to repair first, because their bound pods run for nothing; then by priority. Then by the
 * second since which they wait for a turn: a gang with a failed attempt goes behind those that
 * wait. Then by age, as when a leader begins and all wait since then. */
static bool goes_before(const Gang *a, const Gang *b) {
        int r;

        if (a->state != b->state)
                return a->state == GANG_REPAIR;
        if (a->count.priority_high != b->count.priority_high)
                return a->count.priority_high > b->count.priority_high;
        if (a->since / USEC_PER_SEC != b->since / USEC_PER_SEC)
                return a->since < b->since;
        r = strcmp(oldest_of(a), oldest_of(b));
        return r != 0 ? r < 0 : strcmp(a->key, b->key) < 0;
}

static Gang *next_gang(const Gangs *gs, usec_t now) {
        Gang *best = NULL, *g, *next;

        HASH_ITER(hh, gs->table.gangs, g, next)
        if (may_begin(gs, g, now) && (!best || goes_before(g, best)))
                best = g;
        return best;
}

/* Whether the missing members would fit the cluster if no pod held a card. True when unknown. */
static bool fits_cluster(Gangs *gs, Gang *g, usec_t now) {
        uint32_t missing = g->count.min - gang_table_n_bound(g);
        uint64_t question = hash_question(gs, g);
        bool was;
        int room;

        if (g->judged == question)
                return !g->too_large;
        room = gang_plan_room_when_empty(g, gs->ledger);
        if (room < 0)
                return true;
        g->judged = question;
        was = g->too_large;
        g->too_large = (uint32_t) room < missing;
        if (g->too_large) {
                g->retry = now + GANGS_BACKOFF;
                gang_words_say(g, g->why, ": the cluster has cards for %d of %u even when empty", room,
                               missing);
                if (!was)
                        gangs_tell(gs, g, REASON_GANGS_WAITING, g->why);
        }
        return !g->too_large;
}

static void begin_next(Gangs *gs, usec_t now) {
        Gang *g;

        while (!gs->assembling && (g = next_gang(gs, now)))
                if (fits_cluster(gs, g, now))
                        gangs_begin(gs, g, now);
}

/* ---- time ---- */

static bool has_unsound_place(Gangs *gs, Gang *g, bool *ret_held) {
        bool found = false;

        for (GangMember *m = g->members; m; m = m->next)
                if (m->place && !gang_plan_is_sound(m)) {
                        found = true;
                        *ret_held |= m->held;
                        if (!m->held)
                                gangs_end_place(gs, m); /* the next filter call makes a new place */
                }
        return found;
}

/* Whether a member of the attempt still has its gate, or its last waking patch failed. */
static bool is_not_awake(const GangMember *m) {
        return gang_table_is_ready(m) && (m->gated || m->wakes > 0) && !m->waking && !m->answered && !m->held;
}

static void step_assembling(Gangs *gs, Gang *g, usec_t now) {
        uint32_t have = gang_table_n_bound(g) + g->count.held;
        bool held = false;

        if (has_unsound_place(gs, g, &held) && held)
                gang_words_say(g, g->why, ": a card of its places went out of service");
        else if (now >= g->until)
                gang_words_say(g, g->why, ": %u of %u members were placed in %u s", have, g->count.min,
                               (unsigned) ((g->until - g->since) / USEC_PER_SEC));
        else if (now >= gs->active + GANGS_IDLE || now >= gs->asked + GANGS_BUSY)
                gang_words_say(g, g->why, ": kube-scheduler placed %u of %u members", have, g->count.min);
        else {
                for (GangMember *m = g->members; m; m = m->next)
                        if (is_not_awake(m) && gangs_may_wake_again(m, now))
                                gangs_wake(gs, m, now);
                return;
        }
        gangs_give_up(gs, g, now);
}

/* Whether to wake a member that came after the gang was satisfied, or was refused before. */
static bool is_to_wake(const Gang *g, const GangMember *m) {
        if (!gang_table_is_ready(m) || m->released)
                return false;
        return m->gated || (!m->place && (m->refused || (m->woken == 0 && !gang_table_is_free(g))));
}

/* Ends places that have expired, and wakes members. Returns whether one is still to be woken. */
static bool step_satisfied(Gangs *gs, Gang *g, usec_t now) {
        bool more = false;

        if (g->until != 0 && now >= g->until) {
                gangs_end_places(gs, g);
                g->until = 0;
        }
        for (GangMember *m = g->members; m; m = m->next)
                if (is_to_wake(g, m)) {
                        more = true;
                        if (gangs_may_wake_again(m, now))
                                gangs_wake(gs, m, now);
                }
        return more;
}

/* Whether no member names a scheduler that asks us. */
static bool is_foreign(const Gang *g) {
        return g->count.elsewhere == g->count.living;
}

/* How long a gang waits for members before an Event says so, and between two Events. */
#define TELL_AFTER (10 * USEC_PER_SEC)
#define TELL_AGAIN (600 * USEC_PER_SEC) /* for an Event with the same text */

static void step_waiting(Gangs *gs, Gang *g, usec_t now) {
        char why[GANGS_WHY_MAX];

        if (g->count.min_differs && !g->told_differs) {
                g->told_differs = true;
                gang_words_say(g, why, ": min-available differs between members; %u counts", g->count.min);
                gangs_tell(gs, g, REASON_GANGS_WAITING, why);
        }
        if (now < g->since + TELL_AFTER || (g->told.at != 0 && now < g->told.at + TELL_AFTER))
                return;
        gang_words_explain(g, why);
        if (told_is_news(&g->told, str_from(why), now, TELL_AGAIN))
                gangs_tell(gs, g, REASON_GANGS_WAITING, why);
}

bool gangs_step(Gangs *gs, usec_t now) {
        bool more = false;
        Gang *g, *next;

        if (!gs->leading)
                return false;
        HASH_ITER(hh, gs->table.gangs, g, next) {
                gangs_settle(gs, g, now);
                if (g->state == GANG_ASSEMBLING)
                        step_assembling(gs, g, now);
                if (g->state == GANG_SATISFIED)
                        more |= step_satisfied(gs, g, now);
                else if (g->state != GANG_ASSEMBLING && !is_foreign(g))
                        step_waiting(gs, g, now);
                more |= !is_foreign(g) && (g->state != GANG_SATISFIED || g->until != 0);
        }
        begin_next(gs, now);
        return more;
}
