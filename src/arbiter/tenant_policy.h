/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The six policies of compute, as settings of one engine. Pure. */

#include "slice/compute_policy.h"

enum { POLICY_PPM = 1000000 };

/* What the engine knows of a tenant's rights. */
typedef struct TenantPolicy {
        bool gated;      /* it waits for windows */
        bool conserving; /* it may have what nobody else wants; its part of the rest goes by weight */
        bool high;       /* it comes first */
        uint32_t
                rate; /* ppm of the card's time: a cap; of who is high and conserving: while others want the card */
        uint32_t weight; /* 1 at least */
} TenantPolicy;

TenantPolicy tenant_policy(const CardCompute *card, const ComputeRequest *request);
