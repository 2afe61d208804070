/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the counts of a table of policies are those of its pods. */

#include "scheduler/policy/policy_table-internal.h"

static inline bool policy_check_one(PolicyTable *t, const Policy *p) {
        for (size_t k = 0; k < p->spec.n_units; k++) {
                uint32_t placed = 0, terminating = 0, counted = 0, in_groups = 0;

                for (const PolicyPod *pod = t->pods; pod; pod = pod->hh.next) {
                        if (pod->policy != p || pod->unit != k)
                                continue;
                        placed += pod->summed;
                        terminating += pod->summed && pod->terminating;
                        counted += policy_table_does_count(pod);
                }
                for (const PolicyGroup *g = p->groups; g; g = g->hh.next)
                        in_groups += g->pods[k];
                if (placed != p->placed[k] || terminating != p->terminating[k] || counted != in_groups)
                        return false;
        }
        return true;
}

/* Whether the counts equal a count from scratch. */
static inline bool policy_table_check(PolicyTable *t) {
        policy_table_settle(t, 0); /* counts again what is stale */
        for (const Policy *p = t->policies; p; p = p->hh.next)
                if (!policy_check_one(t, p))
                        return false;
        return true;
}
