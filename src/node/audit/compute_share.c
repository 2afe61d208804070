/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/compute_share.h"

#include <string.h>

#include "base/minmax.h"
#include "node/audit/at_one_time.h"

/* The cap that the arbiter derives from the same settings: ppm; POLICY_PPM: none. */
static uint32_t cap_of(const ComputeShare *s, const ComputeRequest *asked, uint32_t percent) {
        CardCompute compute = compute_for_mode(&s->compute->configured, s->inventory->mode);
        ComputeRequest request = asked ? *asked : (ComputeRequest){.weight = 1};
        TenantPolicy policy;

        request.percent = percent;
        policy = tenant_policy(&compute, &request);
        return policy.gated && !policy.conserving ? policy.rate : POLICY_PPM;
}

bool compute_share_is_cap(const ComputeShare *s) {
        return s->compute->known && share_mode_is_isolated(s->inventory->mode) &&
               cap_of(s, NULL, 1) < POLICY_PPM;
}

static const ComputeRequest *request_of(const RosterPod *pod, const char *name) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (strcmp(pod->containers[i].name, name) == 0)
                        return &pod->containers[i].compute;
        return NULL;
}

uint32_t compute_share_of_container(const ComputeShare *s, const RosterPod *pod, const RecordContainer *given,
                                    uint32_t card) {
        uint32_t percent = given ? device_set_count(&given->given[DEVICE_CORE], card) : 0;

        if (!given || device_set_count(&given->given[DEVICE_MEM], card) == 0)
                return 0;
        if (percent > 0 && given->size_core > percent) /* the slice has grown */
                percent = given->size_core;
        if (!s->ignores_disable && roster_is_not_isolated(pod, given->name))
                return POLICY_PPM;
        return cap_of(s, request_of(pod, given->name), percent);
}

uint32_t compute_share_of_pod(const ComputeShare *s, const RosterPod *pod, const Record *record,
                              uint32_t card) {
        AtOneTime ppm = {0};

        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *given = &record->containers[i];
                uint32_t share = compute_share_of_container(s, pod, given, card);

                if (share >= POLICY_PPM)
                        return POLICY_PPM;
                at_one_time_add(&ppm, pod, given, share);
        }
        return (uint32_t) min_u64(at_one_time_sum(&ppm), POLICY_PPM);
}
