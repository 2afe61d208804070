/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The six policies of compute, as settings of one engine. Pure. */

#include <stdbool.h>
#include <stdint.h>

enum {
        POLICY_FAIR = 0,       /* a fixed 1/max_inst; empty places stay idle */
        POLICY_PREEMPTIVE = 1, /* 1/(containers that have work) */
        POLICY_WEIGHTED = 2,   /* weight / sum of weights of those that have work */
        POLICY_FIXED = 3,      /* its percentage, never more */
        POLICY_SOFT = 4,       /* its percentage when others want the card, too */
        POLICY_NATIVE = 5,     /* the driver's own scheduling */
        POLICY_N
};

enum {
        POLICY_PPM = 1000000,
        POLICY_INSTANCES = 20, /* max_inst where nobody says it */
        POLICY_PRIO_RATIO = 80 /* percent, where nobody says it */
};

typedef struct PolicyWish {
        uint32_t
                policy; /* 1 + the number; 0, and what is no policy: fixed with a percentage, native without */
        uint32_t percent;              /* 0: none; more than 100 is 100 */
        uint32_t weight;               /* 0 is 1 */
        uint32_t max_inst, prio_ratio; /* 0: not said */
        bool high;
} PolicyWish;

/* What the engine knows of a tenant's rights. */
typedef struct TenantPolicy {
        bool gated;      /* it waits for windows */
        bool conserving; /* it may have what nobody else wants; its part of the rest goes by weight */
        bool high;       /* it comes first */
        uint32_t
                rate; /* ppm of the card's time: a cap; of who is high and conserving: while others want the card */
        uint32_t weight; /* 1 at least */
} TenantPolicy;

TenantPolicy tenant_policy(const PolicyWish *wish);
