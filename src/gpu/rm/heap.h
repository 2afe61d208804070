/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What RM_ESC_VID_HEAP_CONTROL takes besides RmHeap: the same 184 bytes with other fields in them.
 * libc only. */

#include "gpu/rm/rm.h"

/* Functions that drivers 535 to 595 have besides those of rm.h, and that give none of the card's
 * memory. */
enum {
        RM_HEAP_DUMP = 11,
        RM_HEAP_REACQUIRE_COMPR = 15,
        RM_HEAP_RELEASE_COMPR = 16,
        RM_HEAP_GET_ALIGNMENT = 18,
        RM_HEAP_HW_ALLOC = 19,
        RM_HEAP_HW_FREE = 20,
        RM_HEAP_ALLOC_OS_DESCRIPTOR = 27, /* the machine's memory */
};

typedef struct
        RmHeapPitch { /* NVOS32_PARAMETERS for ALLOC_PITCH_HEIGHT: other fields between flags and size */
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

typedef struct RmHeapFree { /* NVOS32_PARAMETERS for FREE */
        uint32_t root, parent, function, vspace;
        int16_t ivc;
        uint16_t pad0;
        uint32_t status;
        uint64_t total, free;
        uint32_t owner, memory, flags; /* flags: bit 0 must be set */
        uint8_t rest[132];
} RmHeapFree;

typedef struct RmHeapInfo { /* NVOS32_PARAMETERS for INFO: all in bytes, out */
        uint32_t root, parent, function, vspace;
        int16_t ivc;
        uint16_t pad0;
        uint32_t status;
        uint64_t total, free;
        uint32_t attr, pad1;
        uint64_t largest_at, largest, base;
        uint8_t rest[112];
} RmHeapInfo;

RM_SIZE(RmHeapPitch, 184);
RM_AT(RmHeapPitch, height, 56);
RM_AT(RmHeapPitch, attr, 64);
RM_AT(RmHeapPitch, size, 88);
RM_SIZE(RmHeapFree, 184);
RM_AT(RmHeapFree, flags, 48);
RM_SIZE(RmHeapInfo, 184);
RM_AT(RmHeapInfo, largest, 56);
