/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Translates the six compute policies into settings of one engine. Pure. */

#include "slice/compute_policy.h"

enum { POLICY_PPM = 1000000 };

typedef struct TenantPolicy {
        bool gated;      /* its launches wait for windows */
        bool conserving; /* work-conserving: may use idle time; the rest is divided by weight */
        bool high;       /* high priority */
        uint32_t rate;   /* cap, ppm; high and conserving: only while other tenants have work */
        uint32_t weight; /* at least 1 */
} TenantPolicy;

TenantPolicy tenant_policy(const CardCompute *card, const ComputeRequest *request);
