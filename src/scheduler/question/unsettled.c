/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/unsettled.h"

#include <errno.h>

#include "scheduler/gang/gangs.h"

bool unsettled_may_wait(PendingPod *pod, usec_t now) {
        if (pod->deferred == 0)
                pod->deferred = now;
        return now < pod->deferred + GANGS_ATTEMPT;
}

void unsettled_add(Unsettled *u, const VictimCost *cost) {
        if (!u->any || victim_cost_compare(cost, &u->cost) < 0)
                *u = (Unsettled){true, *cost};
}

bool unsettled_is_cheaper(const Unsettled *u, const VictimCost *today) {
        return u->any && (!today || victim_cost_compare(&u->cost, today) < 0);
}

/* Whether the grant is a place of a gang (gang/gang_plan.h). Only these and the hold (hold.h) have
 * no UID. */
static bool is_planned(const View *v, const Grant *g) {
        return str_is_empty(grant_uid(g)) && g != v->hold.grant;
}

/* A member with its Binding under way, until the watch shows it bound; else NULL. */
static const ViewPod *settling_pod(const View *v, const Grant *g) {
        const ViewPod *pod = v->n_from_plan > 0 ? view_pod_find(v, grant_uid(g)) : NULL;

        return pod && pod->from_plan && pod->grant == g && pod->priority != INT64_MIN ? pod : NULL;
}

int unsettled_grants(const View *v, const LedgerNode *node, size_t more, Arena *arena, UnsettledGrants *ret) {
        size_t n_plans = 0, n_soon = 0;

        for (const Grant *g = ledger_node_grants(node); g; g = grant_next(g)) {
                n_plans += is_planned(v, g);
                n_soon += settling_pod(v, g) != NULL;
        }
        *ret = (UnsettledGrants){
                .plans = (const Grant **) arena_alloc(arena, n_plans + more + 1, sizeof(Grant *)),
                .soon = arena_new(arena, VictimSoon, n_soon + 1)};
        if (!ret->plans || !ret->soon)
                return -ENOMEM;
        for (const Grant *g = ledger_node_grants(node); g; g = grant_next(g)) {
                const ViewPod *pod = settling_pod(v, g);

                if (is_planned(v, g))
                        ret->plans[ret->n_plans++] = g;
                if (pod)
                        ret->soon[ret->n_soon++] = (VictimSoon){
                                .grant = g,
                                .profile = {.uid = grant_uid(g),
                                            .settling = true,
                                            .is = {.priority = pod->priority, .start = INT64_MIN}}};
        }
        return 0;
}
