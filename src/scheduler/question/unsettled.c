/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/unsettled.h"

#include <errno.h>

#include "scheduler/gang/gangs.h"

bool unsettled_may_wait(PendingPod *pod, usec_t now) {
        if (!pod)
                return true;
        if (pod->deferred == 0)
                pod->deferred = now;
        return now < pod->deferred + GANGS_ATTEMPT;
}

/* Of the grants without a UID one may be the hold (hold.h); the others are places of gangs
 * (gang/gang_plan.h). */
static bool is_planned(const View *v, const Grant *g) {
        return str_is_empty(grant_uid(g)) && g != v->hold.grant;
}

size_t unsettled_plans(const View *v, const LedgerNode *node, const Grant **into) {
        size_t n = 0;

        for (const Grant *g = ledger_node_grants(node); g; g = grant_next(g)) {
                if (!is_planned(v, g))
                        continue;
                if (into)
                        into[n] = g;
                n++;
        }
        return n;
}

size_t unsettled_members(const View *v, const LedgerNode *node, VictimSoon *into) {
        size_t n = 0;

        for (const Grant *g = ledger_node_grants(node); g && v->n_from_plan > 0; g = grant_next(g)) {
                const ViewPod *pod = view_pod_find(v, grant_uid(g));

                if (!pod || !pod->from_plan || pod->grant != g || pod->priority == INT64_MIN)
                        continue;
                if (into)
                        into[n] = (VictimSoon){
                                .grant = g,
                                .profile = {.uid = grant_uid(g),
                                            .settling = true,
                                            .is = {.priority = pod->priority, .start = INT64_MIN}}};
                n++;
        }
        return n;
}

int unsettled_cost(const View *v, const VictimQuestion *q, Arena *arena, VictimCost *ret) {
        VictimQuestion later = *q;
        VictimChoice choice;
        const Grant **planned;
        VictimSoon *soon;
        size_t n = unsettled_plans(v, q->node, NULL), n_soon = unsettled_members(v, q->node, NULL);
        int r;

        if (n + n_soon == 0)
                return VICTIMS_E_NONE;
        planned = (const Grant **) arena_alloc(arena, n + 1, sizeof *planned);
        soon = arena_new(arena, VictimSoon, n_soon + 1);
        if (!planned || !soon)
                return -ENOMEM;
        later.gone = planned;
        later.n_gone = unsettled_plans(v, q->node, planned);
        later.soon = soon;
        later.n_soon = unsettled_members(v, q->node, soon);
        r = victims_choose(&later, arena, &choice);
        if (r == 0)
                *ret = choice.cost;
        return r <= 0 ? r : VICTIMS_E_NONE;
}
