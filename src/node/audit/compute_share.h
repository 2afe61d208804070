/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The share of a card's time that a container was given, in ppm, where that is a cap. POLICY_PPM
 * (arbiter/tenant_policy.h): it has no cap. 0: it was given nothing of the card. Pure. */

#include "arbiter/tenant_policy.h"
#include "node/isolation/node_compute.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct ComputeShare {
        const Inventory *inventory;
        const NodeCompute *compute;
        bool ignores_disable; /* CGPU_DISABLE is not honoured on this node */
} ComputeShare;

/* Whether shares are caps on this node. */
bool compute_share_is_cap(const ComputeShare *s);

uint32_t compute_share_of_container(const ComputeShare *s, const RosterPod *pod, const RecordContainer *given,
                                    uint32_t card);
/* The most that the pod may use at one time (node/audit/at_one_time.h). */
uint32_t compute_share_of_pod(const ComputeShare *s, const RosterPod *pod, const Record *record,
                              uint32_t card);
