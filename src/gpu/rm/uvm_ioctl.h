/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The calls of /dev/nvidia-uvm (uvm_ioctl.h): plain numbers, and parameters of a fixed size, whose
 * last word is the status. libc only. */

#include "gpu/rm/rm.h"

enum {
        UVM_INITIALIZE_CMD = 0x30000001,
        UVM_DEINITIALIZE_CMD = 0x30000002, /* no parameters */
        UVM_REGISTER_GPU_CMD = 37,
        UVM_UNREGISTER_GPU_CMD = 38,
        UVM_PAGEABLE_MEM_ACCESS_CMD = 39,
        UVM_MM_INITIALIZE_CMD = 75,
};

/* A flag: no HMM for this process. Drivers 535.183 to 595.45 have it. */
#define UVM_INIT_DISABLE_HMM UINT64_C(1)
#define UVM_INIT_FLAGS       UINT64_C(3) /* all flags */

typedef struct UvmInitialize {
        uint64_t flags;
        uint32_t status, pad0;
} UvmInitialize;

typedef struct UvmRegisterGpu {
        uint8_t uuid[16]; /* as RM_GID_BINARY */
        uint8_t numa_enabled, pad0[3];
        int32_t numa_node, ctl;
        uint32_t client, partition, status;
} UvmRegisterGpu;

typedef struct UvmUnregisterGpu {
        uint8_t uuid[16];
        uint32_t status;
} UvmUnregisterGpu;

typedef struct UvmPageableMemAccess {
        uint8_t pageable, pad0[3];
        uint32_t status;
} UvmPageableMemAccess;

typedef struct UvmMmInitialize {
        int32_t uvm;
        uint32_t status;
} UvmMmInitialize;

RM_SIZE(UvmInitialize, 16);
RM_SIZE(UvmRegisterGpu, 40);
RM_AT(UvmRegisterGpu, status, 36);
RM_SIZE(UvmPageableMemAccess, 8);
