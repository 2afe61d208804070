/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/gang/gangs-internal.h"

#include "scheduler/gang/gang_plan.h"

static bool is_known_scheduler(const Gangs *gs, uint64_t hash) {
        for (size_t i = 0; i < gs->n_schedulers; i++)
                if (gs->schedulers[i] == hash)
                        return true;
        return false;
}

void gangs_know_scheduler(Gangs *gs, Str name, usec_t now) {
        uint64_t hash = str_hash64(name, 0);
        Gang *g, *next;

        if (is_known_scheduler(gs, hash) || gs->n_schedulers == GANGS_SCHEDULERS_MAX)
                return;
        gs->schedulers[gs->n_schedulers++] = hash;
        HASH_ITER(hh, gs->table.gangs, g, next) {
                for (GangMember *m = g->members; m; m = m->next)
                        m->elsewhere &= m->scheduler != hash;
                gang_table_count(g);
                gangs_settle(gs, g, now);
        }
}

/* Ends the hold and the place of a member that is bound, has ended or is being deleted. */
static void follow_member(Gangs *gs, GangMember *m, usec_t now) {
        if (gang_table_is_ready(m) && !m->bound)
                return;
        if (m->held) {
                gangs_end_hold(gs, m, now);
                gs->inside = true;
                gs->hooks.give_back(gs->hooks.userdata, str_from(m->uid), "the pod is bound, or is going");
                gs->inside = false;
        }
        m->released = false;
        gangs_end_place(gs, m);
}

/* Whether kube-scheduler says, in words of its own, that no node can take the member. A condition
 * from before the attempt may come late; it has our words, "gang ". */
static bool says_unschedulable(const GangPod *pod, uint64_t message_before, const GangMember *m) {
        return m->message != 0 && m->message != message_before && !m->bound &&
               !memmem(pod->message.data, pod->message.len, "gang ", 5);
}

/* Wakes a pod that filter refused before the watch had it. kube-scheduler would not ask again, and
 * the pod would keep that reason. */
static void wake_stranger(Gangs *gs, GangMember *m, usec_t now) {
        uint64_t hash = str_hash64(str_from(m->uid), 0) | 1;

        for (size_t i = 0; i < GANGS_STRANGERS_MAX; i++)
                if (gs->strangers[i] == hash) {
                        gs->strangers[i] = 0;
                        if (gs->leading && gang_table_is_ready(m) && !m->gated)
                                gangs_wake(gs, m, now);
                }
}

int gangs_pod(Gangs *gs, const GangPod *pod, usec_t now) {
        GangMember *m = gang_table_find(&gs->table, pod->uid);
        uint64_t before = m ? m->message : 0;
        char why[GANGS_WHY_MAX];
        Gang *g;
        int r;

        /* The gang's name has changed: the pod leaves its old gang as if it were deleted. */
        if (m && (!str_eq(str_from(m->gang->name), pod->gang)))
                gangs_pod_gone(gs, pod->uid, now);
        r = gang_table_put(&gs->table, pod, &m);
        if (r < 0) {
                /* counts as deleted, so that a gang that loses its last member ends its attempt */
                gangs_pod_gone(gs, pod->uid, now);
                return r;
        }
        g = m->gang;
        if (g->since == 0)
                g->since = now; /* a new gang */
        m->elsewhere = !is_known_scheduler(gs, m->scheduler);
        follow_member(gs, m, now);
        gang_table_count(g);
        if (g == gs->assembling) {
                gangs_note_asked(gs, now);
                if (!m->held && !m->released && says_unschedulable(pod, before, m)) {
                        gang_words_say(g, why, ": member %.*s is unschedulable, see its Events",
                                       STR_CUT(pod->name, GANG_WORDS_MEMBER));
                        m->doubtful = true;
                        gangs_fail_member(gs, m, why, now);
                }
        }
        gangs_settle(gs, g, now);
        wake_stranger(gs, m, now);
        return 0;
}

void gangs_pod_gone(Gangs *gs, Str uid, usec_t now) {
        GangMember *m = gang_table_find(&gs->table, uid);
        bool planned, ends;
        Gang *g;

        if (!m)
                return;
        g = m->gang;
        ends = gs->assembling == g && g->members == m && !m->next;
        planned = m->place != NULL;
        m->terminating = true;
        follow_member(gs, m, now);
        if (ends)
                gs->assembling = NULL;
        if (!gang_table_remove(&gs->table, m))
                gangs_settle(gs, g, now);
        if (ends && !planned)
                gangs_tell_settled(gs);
}

void gangs_list_begin(Gangs *gs) {
        gs->table.generation++;
}

/* A former leader may have seen a gang with all members, some of which have ended since. Their
 * replacements would wait for ever, so a gang with too few members counts as whole. */
static void assume_whole(Gangs *gs, usec_t now) {
        Gang *g, *next;

        HASH_ITER(hh, gs->table.gangs, g, next)
        if (g->count.bound > 0 && !gang_table_has_enough(g)) {
                g->whole = true;
                gangs_settle(gs, g, now);
        }
}

void gangs_list_end(Gangs *gs, usec_t now) {
        GangMember *m, *next;

        HASH_ITER(hh, gs->table.members, m, next)
        if (m->generation != gs->table.generation)
                gangs_pod_gone(gs, str_from(m->uid), now);
        if (!gs->listed)
                assume_whole(gs, now);
        gs->listed = true;
}

void gangs_nodes_changed(Gangs *gs) {
        size_t n = ledger_n_nodes(gs->ledger);
        Gang *g, *next;

        gs->nodes++;
        if (n == gs->n_nodes)
                return;
        gs->n_nodes = n;
        HASH_ITER(hh, gs->table.gangs, g, next)
        (void) gang_plan_forget_offered(g, UINT64_MAX);
}

void gangs_set_leading(Gangs *gs, bool leading, usec_t now) {
        Gang *g, *next;

        gs->leading = leading;
        if (leading)
                return;
        HASH_ITER(hh, gs->table.gangs, g, next) {
                bool assembling = g == gs->assembling;

                gangs_give_back(gs, g, "this replica does not lead any more", now);
                for (GangMember *m = g->members; m; m = m->next)
                        m->released = false;
                gang_table_count(g);
                if (assembling)
                        gang_table_set_state(g, GANG_WAITING, now);
                gangs_settle(gs, g, now);
        }
}

void gangs_active(Gangs *gs, usec_t now) {
        gs->active = now;
}

void gangs_woken(Gangs *gs, Str uid, bool good, usec_t now) {
        GangMember *m = gang_table_find(&gs->table, uid);

        if (!m)
                return;
        m->waking = false;
        m->refused |= !good;
        if (good && !m->gated)
                m->wakes = 0;
        if (good && m->gang == gs->assembling)
                gangs_note_asked(gs, now);
}
