/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The controls of a client about limits of device memory by cgroup, since 615 (ctrl0000unix.h of
 * 615.71.09). SET is for root only, as its flags 0x10004 in g_client_resource_nvoc.h say. libc
 * only. */

#include <stdint.h>

enum {
        SIM_CTRL_SET_LIMITS = 0x3D0D,
        SIM_CTRL_GET_LIMITS = 0x3D0E,
        SIM_CTRL_LIMITS_IMPL = 0x3D0F,
        SIM_LIMITS_MAX = 32,             /* NV0000_CTRL_GPU_MAX_ATTACHED_GPUS */
        SIM_LIMITS_CURRENT_PROCESS = -1, /* in place of a descriptor: the client's creator */
        SIM_RELEASE_WITH_LIMITS = 615,
        RM_ERR_HARD_LIMIT_EXCEEDED = 0x8D, /* NV_ERR_RESOURCE_ACCOUNTING_HARD_LIMIT_EXCEEDED */
        RM_ERR_INVALID_LIMIT = 0x2E,
};

/* MEMACCT_IMPL_NONE, _FALLBACK and _OS */
typedef enum SimLimitsKind { SIM_LIMITS_NONE, SIM_LIMITS_MISC, SIM_LIMITS_DMEM } SimLimitsKind;

typedef struct SimSetLimits {
        int32_t cgroup; /* a descriptor of the cgroup's directory, or SIM_LIMITS_CURRENT_PROCESS */
        uint32_t gpu;
        uint64_t soft, hard; /* bytes; UINT64_MAX: no limit */
} SimSetLimits;

typedef struct SimLimit {
        uint32_t gpu, padding;
        uint64_t soft, hard, used;
} SimLimit;

typedef struct SimGetLimits {
        int32_t cgroup;
        uint32_t n;
        SimLimit list[SIM_LIMITS_MAX];
} SimGetLimits;

typedef struct SimLimitsImpl {
        uint32_t kind;
} SimLimitsImpl;

_Static_assert(sizeof(SimSetLimits) == 24, "as in the driver's headers");
_Static_assert(sizeof(SimGetLimits) == 1032, "as in the driver's headers");
_Static_assert(sizeof(SimLimitsImpl) == 4, "as in the driver's headers");
