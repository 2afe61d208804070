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
        UVM_PAGEABLE_ON_GPU_CMD = 70,
        UVM_MM_INITIALIZE_CMD = 75,
        UVM_REGISTER_VASPACE_CMD = 25,
        UVM_UNREGISTER_VASPACE_CMD = 26, /* UvmUnregisterGpu */
        UVM_MAP_EXTERNAL_CMD = 33,
        UVM_FREE_CMD = 34,
        UVM_UNMAP_EXTERNAL_CMD = 66,
        UVM_ALLOC_POOL_CMD = 68,
        UVM_CREATE_RANGE_CMD = 73,
        UVM_MAP_SPARSE_CMD = 74, /* UvmUnmapExternal */
        UVM_ALLOC_P2P_CMD = 78,
};

/* Length of the list of cards in one call, from 550 on; before it is 32. */
enum { UVM_GPUS_MAX = 256 };

/* A flag: disables HMM for this process. Drivers 535.183 to 615.71 have it. */
#define UVM_INIT_DISABLE_HMM UINT64_C(1)
#define UVM_INIT_FLAGS       UINT64_C(7) /* all flags, from 610 on; before it they are 3 */

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

typedef struct UvmPageableOnGpu {
        uint8_t uuid[16];
        uint8_t pageable, pad0[3];
        uint32_t status;
} UvmPageableOnGpu;

typedef struct UvmMmInitialize {
        int32_t uvm;
        uint32_t status;
} UvmMmInitialize;

typedef struct UvmRegisterVaspace {
        uint8_t uuid[16];
        int32_t ctl;
        uint32_t client, vaspace, status;
} UvmRegisterVaspace;

/* How one card maps the range: the card, and the attributes of the mapping. */
typedef struct UvmMapping {
        uint8_t uuid[16];
        uint32_t type, caching, format, bits, compression;
} UvmMapping;

/* Maps part of a memory object into a range: uvm duplicates the whole object for each card. The
 * fields after `gpus` have smaller offsets where that list is shorter (uvm_gpus in release.h). */
typedef struct UvmMapExternal {
        uint64_t base, length, offset;
        UvmMapping gpus[UVM_GPUS_MAX];
        uint64_t n;
        int32_t ctl;
        uint32_t client, memory, status;
} UvmMapExternal;

typedef struct UvmAllocPool {
        uint64_t base, length;
        UvmMapping gpus[UVM_GPUS_MAX];
        uint64_t n;
        uint32_t status, pad0;
} UvmAllocPool;

/* Before 590 it also has the length, after base. */
typedef struct UvmFree {
        uint64_t base;
        uint32_t status, pad0;
} UvmFree;

typedef struct UvmUnmapExternal {
        uint64_t base, length;
        uint8_t uuid[16];
        uint32_t status, pad0;
} UvmUnmapExternal;

typedef struct UvmCreateRange {
        uint64_t base, length;
        uint32_t status, pad0;
} UvmCreateRange;

typedef struct UvmAllocP2p {
        uint64_t base, length, offset;
        uint8_t uuid[16];
        int32_t ctl;
        uint32_t client, memory, status;
} UvmAllocP2p;
