/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/gang/gangs-internal.h"

#include <stdlib.h>

#include "scheduler/gang/gang_plan.h"

/* ---- filter ---- */

static GangsVerdict take_place(GangsNode *nodes, size_t n, const LedgerNode *node) {
        for (size_t i = 0; i < n; i++)
                nodes[i].take = nodes[i].node == node;
        return GANGS_TAKE;
}

static bool is_offered(const GangsNode *nodes, size_t n, const LedgerNode *node) {
        for (size_t i = 0; i < n; i++)
                if (nodes[i].node == node && !nodes[i].barred)
                        return true;
        return false;
}

static GangsVerdict refuse_member(GangMember *m, char *why) {
        m->refused = true;
        gang_words_explain(m->gang, why);
        return GANGS_REFUSE;
}

static GangsVerdict give_up_in_filter(Gangs *gs, GangMember *m, usec_t now, char *why) {
        Gang *g = m->gang;

        (void) snprintf(why, GANGS_WHY_MAX, "%s", g->why);
        m->refused = true;
        gangs_give_up(gs, g, now);
        return GANGS_REFUSE;
}

/* Replaces the nodes that are barred for this member by NULL. Returns whether there was one. */
static bool leave_out_barred(const GangsNode *nodes, const LedgerNode **offered, size_t n) {
        bool any = false;

        for (size_t i = 0; i < n; i++)
                if (nodes[i].barred) {
                        offered[i] = NULL;
                        any = true;
                }
        return any;
}

/* Moves the place of the member to a node that kube-scheduler offers. */
static int move_place(Gangs *gs, GangMember *m, const LedgerNode *const *offered, size_t n) {
        if (m->place && gang_plan_swap(m, offered, n))
                return 0;
        gangs_tell_room(gs, m); /* without a new place the old one is given up */
        return gang_plan_place(m, gs->ledger, offered, n);
}

static GangsVerdict filter_with(Gangs *gs, GangMember *m, GangsNode *nodes, const LedgerNode **offered,
                                size_t n, usec_t now, char *why) {
        Gang *g = m->gang;
        bool any_barred;
        int r = 0;

        gang_plan_note_offered(m, offered, n);
        if (!g->planned) {
                uint32_t missing = g->count.min - gang_table_n_bound(g);

                r = gang_plan_make(g, gs->ledger);
                g->planned = r >= 0;
                if (r >= 0 && (uint32_t) r < missing) {
                        gang_words_say(g, g->why, ": the cluster has room for %d of %u members", r, missing);
                        return give_up_in_filter(gs, m, now, why);
                }
        }
        any_barred = leave_out_barred(nodes, offered, n);
        if (r >= 0 && !(m->place && is_offered(nodes, n, grant_node(m->place)))) {
                bool had = m->place != NULL;

                r = move_place(gs, m, offered, n);
                if (r > 0 && had) {
                        gang_words_say(g, why,
                                       any_barred ? ": no node that its policy allows has room for %.*s"
                                                  : ": no offered node has room for member %.*s",
                                       STR_CUT(str_from(m->name), GANG_WORDS_MEMBER));
                        m->refused = true;
                        gangs_fail_member(gs, m, why, now);
                        return GANGS_REFUSE;
                }
        }
        if (r < 0 || !m->place) {
                m->refused = true;
                gang_words_say(g, why,
                               r < 0 ? ": out of memory" : ": no room besides the members that are placed");
                return GANGS_REFUSE;
        }
        m->answered = true;
        gangs_clear_failure(m);
        return take_place(nodes, n, grant_node(m->place));
}

static GangsVerdict filter_assembling(Gangs *gs, GangMember *m, GangsNode *nodes, size_t n, usec_t now,
                                      char *why) {
        _cleanup_free_ const LedgerNode **offered = NULL;

        gangs_note_asked(gs, now);
        if (!gang_table_is_ready(m))
                return refuse_member(m, why);
        if (!m->request)
                return GANGS_FREE;
        offered = (const LedgerNode **) calloc(n + 1, sizeof *offered);
        if (!offered)
                return refuse_member(m, why);
        for (size_t i = 0; i < n; i++)
                offered[i] = nodes[i].node;
        return filter_with(gs, m, nodes, offered, n, now, why);
}

GangsVerdict gangs_filter(Gangs *gs, const GangsPod *pod, GangsNode *nodes, size_t n, usec_t now, char *why) {
        GangMember *m = gang_table_find(&gs->table, pod->uid);
        Gang *g = m ? m->gang : gang_table_find_gang(&gs->table, pod->namespace_, pod->gang);

        if (!m && (g ? g->state == GANG_SATISFIED : str_is_empty(pod->min)))
                return GANGS_FREE;
        if (!m) {
                gs->strangers[gs->next_stranger++ % GANGS_STRANGERS_MAX] = str_hash64(pod->uid, 0) | 1;
                (void) snprintf(why, GANGS_WHY_MAX, "gang member is not known yet");
                return GANGS_REFUSE;
        }
        if (g->state == GANG_ASSEMBLING)
                return filter_assembling(gs, m, nodes, n, now, why);
        if (g->state != GANG_SATISFIED)
                return refuse_member(m, why);
        if (m->place && is_offered(nodes, n, grant_node(m->place)))
                return take_place(nodes, n, grant_node(m->place));
        if (!m->released)
                gangs_end_place(gs, m);
        return GANGS_FREE;
}

/* ---- bind ---- */

GangsVerdict gangs_bind(Gangs *gs, Str uid, Str node, usec_t now, char *why) {
        GangMember *m = gang_table_find(&gs->table, uid);
        bool placed;

        if (!m || gang_table_is_free(m->gang))
                return GANGS_FREE;
        if (m->gang == gs->assembling)
                gangs_note_asked(gs, now);
        placed = m->place && str_eq(ledger_node_name(grant_node(m->place)), node);
        if (m->gang->state == GANG_SATISFIED)
                return placed ? GANGS_TAKE : GANGS_FREE;
        if (m->gang->state != GANG_ASSEMBLING || !gang_table_is_ready(m)) {
                gang_words_explain(m->gang, why);
                return GANGS_REFUSE;
        }
        if (m->request && !placed) {
                gang_words_say(m->gang, why, ": the plan has no place on this node for the member");
                return GANGS_REFUSE;
        }
        return GANGS_HOLD;
}

void gangs_held(Gangs *gs, Str uid, usec_t now) {
        GangMember *m = gang_table_find(&gs->table, uid);

        if (!m || m->held)
                return;
        m->held = true;
        m->held_at = now;
        gangs_clear_failure(m);
        gang_table_count(m->gang);
        gangs_settle(gs, m->gang, now);
}

/* Counts a refused Binding. Several of one attempt count as one failure. */
static void note_refusal(GangMember *m, usec_t now) {
        Gang *g = m->gang;

        m->refused = true;
        if (g->refused != g->attempt)
                g->failures++;
        g->refused = g->attempt;
        g->retry = now + gangs_backoff(g->failures);
}

void gangs_bind_ended(Gangs *gs, Str uid, bool bound, usec_t now) {
        GangMember *m = gang_table_find(&gs->table, uid);

        if (!m)
                return;
        if (m->held)
                gangs_end_hold(gs, m, now);
        if (bound)
                gang_table_set_bound(m);
        m->answered = false;
        if (m->released && !bound)
                note_refusal(m, now);
        m->released = false;
        if (m->gang->state == GANG_SATISFIED || bound)
                gangs_end_place(gs, m);
        if (gs->inside)
                return;
        gang_table_count(m->gang);
        gangs_settle(gs, m->gang, now);
}
