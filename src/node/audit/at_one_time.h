/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The most that the containers of a pod may have at one time. Init containers run one after
 * another, beside sidecars, and before the main containers (share/demand.h). The records do not
 * keep the order, so each init container counts beside all sidecars. Pure. */

#include <string.h>

#include "base/minmax.h"
#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct AtOneTime {
        uint64_t sidecars, main, init; /* init: the most of one */
} AtOneTime;

static inline bool at_one_time_is_sidecar(const RosterPod *pod, const RecordContainer *c) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (strcmp(pod->containers[i].name, c->name) == 0)
                        return pod->containers[i].kind == CONTAINER_SIDECAR;
        return false;
}

static inline void at_one_time_add(AtOneTime *t, const RosterPod *pod, const RecordContainer *c,
                                   uint64_t amount) {
        if (c->init)
                t->init = max_u64(t->init, amount);
        else if (at_one_time_is_sidecar(pod, c))
                t->sidecars += amount;
        else
                t->main += amount;
}

static inline uint64_t at_one_time_sum(const AtOneTime *t) {
        return t->sidecars + max_u64(t->main, t->init);
}
