/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a pod's containers take from one card at the same time, as Kubernetes counts cpu
 * (resourcehelper.PodRequests). Main containers and sidecars count by sum. An ordinary init
 * container runs beside the sidecars that started before it, and no other container. The pod takes
 * the larger of the two amounts. Containers are added in the order of the pod: init first. */

#include "base/checked.h"
#include "wire/pod.h"

typedef struct Demand {
        uint64_t steady; /* the sidecars so far, and then the main containers as well */
        uint64_t peak;   /* the most at any time of the init phase */
} Demand;

static inline void demand_add(Demand *d, ContainerKind kind, uint32_t amount) {
        if (kind == CONTAINER_INIT) {
                if (d->steady + amount > d->peak)
                        d->peak = d->steady + amount;
                return;
        }
        d->steady += amount; /* at most 2^16 containers of 2^32: no overflow */
}

static inline uint64_t demand_total(const Demand *d) {
        return d->steady > d->peak ? d->steady : d->peak;
}
