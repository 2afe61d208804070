/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Class 0xF8, memory at a fabric address (cl00f8.h): other cards of an NVSwitch reach it there. */

#include "gpu/rm/layout.h"

enum { RM_FABRIC_FLEXIBLE = 1 }; /* memory is attached later, by a control */

typedef struct RmFabricParams { /* NV00F8_ALLOCATION_PARAMETERS */
        uint64_t alignment, size, page_size;
        uint32_t flags, pad0;
        uint64_t offset; /* offset in the attached memory */
        uint32_t memory, map_flags;
} RmFabricParams;

RM_SIZE(RmFabricParams, 48);
