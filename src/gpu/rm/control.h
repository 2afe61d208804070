/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Controls (RM_ESC_CONTROL) about cards and their memory: ctrl0000gpu.h, ctrl2080gpu.h,
 * ctrl2080fb.h, ctrl0080gpu.h. */

#include "gpu/rm/layout.h"

enum {
        RM_CTRL_ATTACHED_IDS = 0x201,
        RM_CTRL_ID_INFO = 0x202,
        RM_CTRL_ID_INFO_V2 = 0x205,
        RM_CTRL_PROBED_IDS = 0x214,
        RM_CTRL_FIND_SUBDEVICE = 0x800293,
        RM_CTRL_NAME_STRING = 0x20800110,
        RM_CTRL_GID_INFO = 0x2080014A,
        RM_CTRL_PIDS = 0x2080018D,
        RM_CTRL_PID_INFO = 0x2080018E,
        RM_CTRL_CTX_BUFFER_SIZE = 0x20801218,
        RM_CTRL_FB_INFO = 0x20801301,
        RM_CTRL_FB_INFO_V2 = 0x20801303,
        RM_CTRL_FB_REGION_INFO = 0x20801320,
        RM_CTRL_UGPU_MEMORY = 0x20801362, /* from 590 on */
};

enum { RM_ATTACHED_MAX = 32 };
#define RM_GPU_ID_NONE 0xFFFFFFFFu

typedef struct RmIdInfo { /* NV0000_CTRL_GPU_GET_ID_INFO_PARAMS */
        uint32_t gpu, flags, device, subdevice;
        uint64_t name;
        uint32_t sli, board, instance;
        int32_t numa;
} RmIdInfo;

typedef struct RmIdInfoV2 { /* NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS */
        uint32_t gpu, flags, device, subdevice, sli, board, instance;
        int32_t numa;
} RmIdInfoV2;

/* Called on a device: returns the handle of its subdevice. OBJECT_NOT_FOUND: it has none. */
typedef struct RmFindSubdevice { /* NV0080_CTRL_GPU_FIND_SUBDEVICE_HANDLE_PARAM */
        uint32_t subdevice, handle;
} RmFindSubdevice;

/* Format of GID info, bits 0 and 1 of its flags: "GPU-..." with its NUL (41 bytes), or 16 bytes in
 * the order of the text. */
enum { RM_GID_ASCII = 0, RM_GID_BINARY = 2, RM_GID_FORMAT_MASK = 3 };

typedef struct RmGidInfo { /* NV2080_CTRL_GPU_GET_GID_INFO_PARAMS */
        uint32_t index, flags, length;
        uint8_t data[256];
} RmGidInfo;

/* Indices of FB info; sizes are in KiB. */
enum {
        RM_FB_RAM_SIZE = 0x07,
        RM_FB_TOTAL_RAM_SIZE = 0x08,
        RM_FB_HEAP_SIZE = 0x09,
        RM_FB_MAPPABLE_HEAP_SIZE = 0x0A,
        RM_FB_HEAP_BASE = 0x11,
        RM_FB_LARGEST_FREE_REGION = 0x12,
        RM_FB_LARGEST_FREE_REGION_BASE = 0x13,
        RM_FB_HEAP_FREE = 0x16,
        RM_FB_HEAP_START = 0x1E,
        RM_FB_USABLE_RAM_SIZE = 0x20,
        RM_FB_PROTECTED_SIZE = 0x33, /* 0 without confidential computing; the next one, too */
        RM_FB_PROTECTED_FREE = 0x34,
        RM_FB_INDEX_MAX = 0x44, /* of release 615, or higher */
};

typedef struct RmFbEntry {
        uint32_t index, data;
} RmFbEntry;

/* Of release 595; older drivers have shorter lists, which shows in the size of the call. */
enum { RM_FB_LIST_MAX = 0x80 };

typedef struct RmFbInfo { /* NV2080_CTRL_FB_GET_INFO_PARAMS */
        uint32_t n, pad0;
        uint64_t list;
} RmFbInfo;

typedef struct RmFbInfoV2 { /* NV2080_CTRL_FB_GET_INFO_V2_PARAMS */
        uint32_t n;
        RmFbEntry list[RM_FB_LIST_MAX];
} RmFbInfoV2;

typedef struct RmFbRegion {
        uint64_t base, limit, reserved;
        uint32_t performance;
        uint8_t compressed, iso, is_protected, blacklist[18], pad0[7];
} RmFbRegion;

enum { RM_FB_REGION_MAX = 16 };

typedef struct RmFbRegions { /* NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO_PARAMS */
        uint32_t n, pad0;
        RmFbRegion regions[RM_FB_REGION_MAX];
} RmFbRegions;

/* Bytes of the whole card, and of each half of it. */
typedef struct RmUgpuMemory { /* NV2080_CTRL_FB_GET_UGPU_MEMORY_INFO_PARAMS */
        uint64_t total, free, ugpu_total[2], ugpu_free[2];
} RmUgpuMemory;

RM_SIZE(RmIdInfo, 40);
RM_SIZE(RmIdInfoV2, 32);
RM_SIZE(RmFindSubdevice, 8);
RM_SIZE(RmGidInfo, 268);
RM_SIZE(RmFbInfoV2, 1028);
RM_SIZE(RmFbRegion, 56);
RM_SIZE(RmFbRegions, 904);
RM_SIZE(RmUgpuMemory, 48);
