/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* RM_ESC_VID_HEAP_CONTROL: its functions, and the layouts of its 184 bytes. libc only. */

#include "gpu/rm/layout.h"

/* RmHeap.function. */
enum {
        RM_HEAP_ALLOC_SIZE = 2,
        RM_HEAP_FREE = 3,
        RM_HEAP_INFO = 5,
        RM_HEAP_ALLOC_PITCH_HEIGHT = 6,
        RM_HEAP_ALLOC_SIZE_RANGE = 14,
};

/* Further functions of drivers 535 to 595. They allocate no memory of the card. */
enum {
        RM_HEAP_DUMP = 11,
        RM_HEAP_REACQUIRE_COMPR = 15,
        RM_HEAP_RELEASE_COMPR = 16,
        RM_HEAP_GET_ALIGNMENT = 18,
        RM_HEAP_HW_ALLOC = 19,
        RM_HEAP_HW_FREE = 20,
        RM_HEAP_ALLOC_OS_DESCRIPTOR = 27, /* memory of the machine */
};

/* All functions have the fields up to `free` in common, and each its own behind them. */
typedef struct RmHeap { /* NVOS32_PARAMETERS for ALLOC_SIZE */
        uint32_t root, parent, function, vspace;
        int16_t ivc;
        uint16_t pad0;
        uint32_t status;
        uint64_t total, free;
        uint32_t owner, memory, type, flags, attr, format, compr, zcull; /* 40 to 71 */
        uint32_t partition_stride, width;
        uint32_t height, pad1; /* 80 */
        uint64_t size;         /* 88 */
        uint8_t rest[88];
} RmHeap;

typedef struct RmHeapPitch { /* NVOS32_PARAMETERS for ALLOC_PITCH_HEIGHT */
        uint32_t root, parent, function, vspace;
        int16_t ivc;
        uint16_t pad0;
        uint32_t status;
        uint64_t total, free;
        uint32_t owner, memory, type, flags, height;
        int32_t pitch;
        uint32_t attr, width, format, compr, zcull, partition_stride;
        uint64_t size; /* out: height * pitch, rounded */
        uint8_t rest[88];
} RmHeapPitch;

/* Differs from RmHeap behind partition_stride: it has no width and height, and `size` is at 80. */
typedef struct RmHeapRange { /* NVOS32_PARAMETERS for ALLOC_SIZE_RANGE */
        uint32_t root, parent, function, vspace;
        int16_t ivc;
        uint16_t pad0;
        uint32_t status;
        uint64_t total, free;
        uint32_t owner, memory, type, flags, attr, format, compr, zcull;
        uint32_t partition_stride, pad1;
        uint64_t size; /* in and out */
        uint64_t alignment, offset, limit;
        uint8_t rest[72];
} RmHeapRange;

typedef struct RmHeapFree { /* NVOS32_PARAMETERS for FREE */
        uint32_t root, parent, function, vspace;
        int16_t ivc;
        uint16_t pad0;
        uint32_t status;
        uint64_t total, free;
        uint32_t owner, memory, flags; /* flags: bit 0 must be set */
        uint8_t rest[132];
} RmHeapFree;

typedef struct RmHeapInfo { /* NVOS32_PARAMETERS for INFO; out, in bytes */
        uint32_t root, parent, function, vspace;
        int16_t ivc;
        uint16_t pad0;
        uint32_t status;
        uint64_t total, free;
        uint32_t attr, pad1;
        uint64_t largest_at, largest, base;
        uint8_t rest[112];
} RmHeapInfo;

RM_SIZE(RmHeap, 184);
RM_AT(RmHeap, status, 20);
RM_AT(RmHeap, total, 24);
RM_AT(RmHeap, memory, 44);
RM_AT(RmHeap, attr, 56);
RM_AT(RmHeap, size, 88);
RM_SIZE(RmHeapPitch, 184);
RM_AT(RmHeapPitch, height, 56);
RM_AT(RmHeapPitch, attr, 64);
RM_AT(RmHeapPitch, size, 88);
RM_SIZE(RmHeapRange, 184);
RM_AT(RmHeapRange, memory, 44);
RM_AT(RmHeapRange, attr, 56);
RM_AT(RmHeapRange, size, 80);
RM_AT(RmHeapRange, limit, 104);
RM_SIZE(RmHeapFree, 184);
RM_AT(RmHeapFree, flags, 48);
RM_SIZE(RmHeapInfo, 184);
RM_AT(RmHeapInfo, largest, 56);
