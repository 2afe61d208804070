/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The boundary of NVIDIA's kernel driver: numbers and layouts of the calls that have to do with
 * memory, as its open source shows them (kernel modules 535.183 to 595.45: nvos.h, nv_escape.h,
 * ctrl2080fb.h, ctrl2080gpu.h, ctrl0000gpu.h, cl0080.h). Facts only, and no code: the gate and the
 * simulated driver both stand on this page. Everything is little endian, pointers are 64 bits wide.
 * libc only. */

#include <stddef.h>
#include <stdint.h>

/* ---- ioctls of /dev/nvidiactl and /dev/nvidiaN (character devices, major 195; nvidiactl is minor 255) ---- */

enum { RM_MAJOR = 195, RM_CTL_MINOR = 255 };

/* The driver looks at the number and the size of a request, never at its type byte. */
#define RM_IOCTL_TYPE 'F'
#define RM_IOCTL(nr, size)                                                                                   \
        (0xC0000000u | ((uint32_t) (size) << 16) | ((uint32_t) RM_IOCTL_TYPE << 8) | (uint32_t) (nr))
static inline uint32_t rm_ioctl_nr(unsigned long request) {
        return (uint32_t) request & 0xFFu;
}
static inline uint32_t rm_ioctl_size(unsigned long request) {
        return ((uint32_t) request >> 16) & 0x3FFFu;
}

enum {
        RM_ESC_ALLOC_MEMORY = 0x27,
        RM_ESC_ALLOC_OBJECT = 0x28,
        RM_ESC_FREE = 0x29,
        RM_ESC_CONTROL = 0x2A,
        RM_ESC_ALLOC = 0x2B,
        RM_ESC_DUP_OBJECT = 0x34,
        RM_ESC_VID_HEAP_CONTROL = 0x4A,
        RM_ESC_CARD_INFO = 200,
        RM_ESC_REGISTER_FD = 201,
        RM_ESC_CHECK_VERSION = 210,
        RM_ESC_XFER_CMD = 211,
};

typedef struct RmFree { /* NVOS00_PARAMETERS: the object and all below it */
        uint32_t root, parent, old, status;
} RmFree;

typedef struct RmAlloc { /* NVOS21_PARAMETERS */
        uint32_t root, parent, new, class_;
        uint64_t params;
        uint32_t params_size, status;
} RmAlloc;

typedef struct RmAllocRights { /* NVOS64_PARAMETERS: the same number, told by its size */
        uint32_t root, parent, new, class_;
        uint64_t params, rights;
        uint32_t params_size, flags, status, pad;
} RmAllocRights;

typedef struct RmControl { /* NVOS54_PARAMETERS */
        uint32_t client, object, cmd, flags;
        uint64_t params;
        uint32_t params_size, status;
} RmControl;

/* Not a door to memory of the card, whatever the class: for 0x40 the driver makes an object without
 * memory (0x70; for a privileged caller one that shows all of the card, 0xC2) and answers in limit
 * how much the card has, less one (rmapi_deprecated_allocmemory.c). */
typedef struct RmAllocMemory { /* nv_ioctl_nvos02_parameters_with_fd */
        uint32_t root, parent, new, class_, flags, pad0;
        uint64_t memory, limit; /* limit: size - 1 */
        uint32_t status, pad1;
        int32_t fd;
        uint32_t pad2;
} RmAllocMemory;

typedef struct RmDup { /* NVOS55_PARAMETERS */
        uint32_t client, parent, object, source_client, source_object, flags, status;
} RmDup;

typedef struct
        RmHeap { /* NVOS32_PARAMETERS; what the functions below have in common stands where AllocSize has it */
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

typedef struct RmXfer { /* nv_ioctl_xfer_t: the real number, size and pointer */
        uint32_t cmd, size;
        uint64_t ptr;
} RmXfer;

enum { RM_XFER_MAX = 16384 }; /* NV_ABSOLUTE_MAX_IOCTL_SIZE */

/* ---- classes ---- */

enum {
        RM_CLASS_ROOT = 0x0,
        RM_CLASS_ROOT_NON_PRIV = 0x1,
        RM_CLASS_ROOT_CLIENT = 0x41,
        RM_CLASS_MEMORY_SYSTEM = 0x3E,
        RM_CLASS_MEMORY_LOCAL = 0x40, /* the only one that gives an unprivileged process memory of the card */
        RM_CLASS_MEMORY_DYNAMIC = 0x70, /* addresses */
        RM_CLASS_DEVICE = 0x80,
        RM_CLASS_SUBDEVICE = 0x2080,
        RM_CLASS_MEMORY_VIRTUAL = 0x50A0,
        RM_CLASS_VASPACE = 0x90F1,
        RM_CLASS_CHANNEL_GROUP = 0xA06C,
};

/* The channels (GPFIFO) of all generations since Kepler: 0xA06F, 0xB06F, 0xC06F, 0xC36F, 0xC46F,
 * 0xC56F, 0xC86F... */
static inline int rm_class_is_channel(uint32_t class_) {
        return class_ >= 0xA000 && class_ <= 0xFFFF && (class_ & 0xFFu) == 0x6F;
}

/* Of flags and attr, in RmMemoryParams and RmHeap alike: NVOS32_ALLOC_FLAGS_*, NVOS32_ATTR_*. */
enum {
        RM_FLAG_HANDLE_GIVEN = 0x4000, /* RmHeap: memory is in; otherwise the driver makes a handle */
        RM_FLAG_VIRTUAL = 0x80000,     /* addresses, not memory */
        RM_ATTR_PAGE_SHIFT = 23,
        RM_ATTR_PAGE_MASK = 3,
        RM_ATTR_PAGE_DEFAULT = 0,
        RM_ATTR_PAGE_4KB = 1,
        RM_ATTR_PAGE_BIG = 2,
        RM_ATTR_PAGE_HUGE = 3,
        RM_ATTR_LOCATION_SHIFT = 25,
        RM_ATTR_LOCATION_MASK = 3,
        RM_ATTR_LOCATION_VIDMEM = 0,
        RM_ATTR_LOCATION_PCI = 1,
        RM_ATTR2_HUGE_SHIFT = 20, /* what HUGE means: 0 and 1 are 2 MiB */
        RM_ATTR2_HUGE_MASK = 3,
};

typedef struct
        RmMemoryParams { /* NV_MEMORY_ALLOCATION_PARAMS, for class 0x40; some versions end before numa_node */
        uint32_t owner;  /* 0, ~0 and 0xDEAF0000 to 0xDEAF0003 are INVALID_OWNER */
        uint32_t type, flags, width, height;
        int32_t pitch;
        uint32_t attr, attr2, format, compr, zcull, pad0;
        uint64_t range_low, range_high;
        uint64_t size; /* in and out: rounded up to the page size that the driver picks */
        uint64_t alignment, offset, limit, address;
        uint32_t ctag, va_space, internal_flags, tag;
        int32_t numa_node;
        uint32_t pad1;
} RmMemoryParams;

typedef struct RmDeviceParams { /* NV0080_ALLOC_PARAMETERS */
        uint32_t device;        /* instance, as GET_ID_INFO tells */
        uint32_t client_share, target_client, target_device, flags, pad0;
        uint64_t va_size, va_start, va_limit;
        uint32_t va_mode, pad1;
} RmDeviceParams;

typedef struct RmSubdeviceParams { /* NV2080_ALLOC_PARAMETERS */
        uint32_t subdevice;
} RmSubdeviceParams;

/* ---- RM_ESC_VID_HEAP_CONTROL ---- */

enum {
        RM_HEAP_ALLOC_SIZE = 2,
        RM_HEAP_FREE = 3,
        RM_HEAP_INFO = 5,
        RM_HEAP_ALLOC_PITCH_HEIGHT = 6,
        RM_HEAP_ALLOC_SIZE_RANGE = 14,
};

/* ---- controls ---- */

enum {
        RM_CTRL_ATTACHED_IDS = 0x201,
        RM_CTRL_ID_INFO = 0x202,
        RM_CTRL_ID_INFO_V2 = 0x205,
        RM_CTRL_PROBED_IDS = 0x214,
        RM_CTRL_NAME_STRING = 0x20800110,
        RM_CTRL_GID_INFO = 0x2080014A,
        RM_CTRL_PIDS = 0x2080018D,
        RM_CTRL_PID_INFO = 0x2080018E,
        RM_CTRL_CTX_BUFFER_SIZE = 0x20801218,
        RM_CTRL_FB_INFO = 0x20801301,
        RM_CTRL_FB_INFO_V2 = 0x20801303,
        RM_CTRL_FB_REGION_INFO = 0x20801320,
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

/* Format of GID info, bits 0 and 1 of its flags: "GPU-..." with its NUL (41 bytes), or 16 bytes in
 * the order of the text. */
enum { RM_GID_ASCII = 0, RM_GID_BINARY = 2, RM_GID_FORMAT_MASK = 3 };

typedef struct RmGidInfo { /* NV2080_CTRL_GPU_GET_GID_INFO_PARAMS */
        uint32_t index, flags, length;
        uint8_t data[256];
} RmGidInfo;

/* Indices of FB info; what is a size is in KiB. */
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
        RM_FB_INDEX_MAX = 0x3B, /* of 595 */
};

typedef struct RmFbEntry {
        uint32_t index, data;
} RmFbEntry;

enum { RM_FB_LIST_MAX = 0x80 }; /* of 595; older ones have shorter lists: the caller's size counts */

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

/* ---- statuses: nvstatuscodes.h ---- */

enum {
        RM_OK = 0x0,
        RM_ERR_ILLEGAL_ACTION = 0x16,
        RM_ERR_INSERT_DUPLICATE_NAME = 0x19,
        RM_ERR_INSUFFICIENT_RESOURCES = 0x1A,
        RM_ERR_INSUFFICIENT_PERMISSIONS = 0x1B,
        RM_ERR_INVALID_ADDRESS = 0x1E,
        RM_ERR_INVALID_ARGUMENT = 0x1F,
        RM_ERR_INVALID_CHANNEL = 0x21,
        RM_ERR_INVALID_CLASS = 0x22,
        RM_ERR_INVALID_CLIENT = 0x23,
        RM_ERR_INVALID_DEVICE = 0x26,
        RM_ERR_INVALID_FLAGS = 0x29,
        RM_ERR_INVALID_OBJECT_HANDLE = 0x33,
        RM_ERR_INVALID_OBJECT_PARENT = 0x36,
        RM_ERR_INVALID_OWNER = 0x39,
        RM_ERR_INVALID_PARAMETER = 0x3B,
        RM_ERR_INVALID_STATE = 0x40,
        RM_ERR_NO_MEMORY = 0x51,
        RM_ERR_NOT_SUPPORTED = 0x56,
        RM_ERR_OBJECT_NOT_FOUND = 0x57,
};

/* ---- what the layouts must be ---- */

#define RM_AT(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field)
#define RM_SIZE(type, size)    _Static_assert(sizeof(type) == (size), "size of " #type)
RM_SIZE(RmFree, 16);
RM_SIZE(RmAlloc, 32);
RM_AT(RmAlloc, params, 16);
RM_AT(RmAlloc, status, 28);
RM_SIZE(RmAllocRights, 48);
RM_AT(RmAllocRights, params_size, 32);
RM_AT(RmAllocRights, status, 40);
RM_SIZE(RmControl, 32);
RM_AT(RmControl, params, 16);
RM_AT(RmControl, status, 28);
RM_SIZE(RmAllocMemory, 56);
RM_AT(RmAllocMemory, limit, 32);
RM_AT(RmAllocMemory, status, 40);
RM_SIZE(RmDup, 28);
RM_AT(RmDup, status, 24);
RM_SIZE(RmHeap, 184);
RM_AT(RmHeap, status, 20);
RM_AT(RmHeap, total, 24);
RM_AT(RmHeap, memory, 44);
RM_AT(RmHeap, attr, 56);
RM_AT(RmHeap, size, 88);
RM_SIZE(RmXfer, 16);
RM_SIZE(RmMemoryParams, 128);
RM_AT(RmMemoryParams, attr, 24);
RM_AT(RmMemoryParams, size, 64);
RM_AT(RmMemoryParams, limit, 88);
RM_SIZE(RmDeviceParams, 56);
RM_SIZE(RmIdInfo, 40);
RM_SIZE(RmIdInfoV2, 32);
RM_SIZE(RmGidInfo, 268);
RM_SIZE(RmFbInfoV2, 1028);
RM_SIZE(RmFbRegion, 56);
RM_SIZE(RmFbRegions, 904);
