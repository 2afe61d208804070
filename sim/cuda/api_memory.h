/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of the driver API: see api.h. */

#include "sim/cuda/api.h"

enum {
        CU_MEMORYTYPE_HOST = 1,
        CU_MEMORYTYPE_DEVICE = 2,
        CU_MEMORYTYPE_ARRAY = 3,
        CU_MEMORYTYPE_UNIFIED = 4,
        CU_MEM_ATTACH_GLOBAL = 1,
        CU_MEM_ATTACH_HOST = 2,
        CU_MEMHOSTALLOC_DEVICEMAP = 2,
        CU_MEMHOSTREGISTER_DEVICEMAP = 2,
        CU_MEM_ALLOCATION_TYPE_PINNED = 1,
        CU_MEM_LOCATION_TYPE_DEVICE = 1,
        CU_MEM_LOCATION_TYPE_HOST = 2,
        CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
        CU_MEM_HANDLE_TYPE_NONE = 0,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
        CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
        CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
        CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
        CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
        CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
        CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
        CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
        CUDA_ARRAY3D_LAYERED = 0x01,
        CUDA_ARRAY3D_CUBEMAP = 0x04,
};

typedef enum CUpointer_attribute {
        CU_POINTER_ATTRIBUTE_CONTEXT = 1,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
        CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
        CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
        CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
        CU_POINTER_ATTRIBUTE_MAPPED = 13,
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
} CUpointer_attribute;

typedef struct CUmemLocation {
        int type, id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
        int type, requestedHandleTypes;
        CUmemLocation location;
        void *win32HandleMetaData;
        struct {
                unsigned char compressionType, gpuDirectRDMACapable;
                unsigned short usage;
                unsigned char reserved[4];
        } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc {
        CUmemLocation location;
        int flags;
} CUmemAccessDesc;

typedef struct CUmemPoolProps {
        int allocType, handleTypes;
        CUmemLocation location;
        void *win32SecurityAttributes;
        size_t maxSize;
        unsigned short usage;
        unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUipcMemHandle {
        char reserved[64];
} CUipcMemHandle;

typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
        int type;
        union {
                int fd;
                struct {
                        void *handle;
                        const void *name;
                } win32;
                const void *nvSciBufObject;
        } handle;
        unsigned long long size;
        unsigned int flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
        unsigned long long offset, size;
        unsigned int flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
