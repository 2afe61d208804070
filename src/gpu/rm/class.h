/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Classes of the driver's objects, and the parameters of those that matter here: cl0080.h,
 * cl2080.h, nvos.h. */

#include "gpu/rm/layout.h"

enum {
        RM_CLASS_ROOT = 0x0,
        RM_CLASS_ROOT_NON_PRIV = 0x1,
        RM_CLASS_ROOT_CLIENT = 0x41,
        RM_CLASS_MEMORY_SYSTEM = 0x3E,
        RM_CLASS_MEMORY_LOCAL = 0x40,   /* the only class with memory of the card for all users */
        RM_CLASS_MEMORY_DYNAMIC = 0x70, /* address ranges, no memory */
        RM_CLASS_OS_DESCRIPTOR = 0x71,  /* the program's own memory */
        RM_CLASS_DEVICE = 0x80,
        RM_CLASS_MEMORY_EXPORT = 0xE0, /* from 550 on */
        RM_CLASS_MEMORY_FLA = 0xF3,    /* until 580 */
        RM_CLASS_MULTICAST = 0xFD,
        RM_CLASS_MEMORY_FABRIC = 0xF8,
        RM_CLASS_MEMORY_FABRIC_IMPORT = 0xF9, /* from 550 on */
        RM_CLASS_SUBDEVICE = 0x2080,
        RM_CLASS_MEMORY_VIRTUAL = 0x50A0,
        RM_CLASS_VASPACE = 0x90F1,
        RM_CLASS_CHANNEL_GROUP = 0xA06C,
};

/* The channels (GPFIFO) of all generations since Fermi: 0x906F, 0xA06F, 0xB06F, 0xC06F, 0xC36F,
 * 0xC46F, 0xC56F, 0xC86F... Since 580 each card has the first one, too (g_gpu_class_list.c). */
static inline int rm_class_is_channel(uint32_t class_) {
        return class_ >= 0x9000 && class_ <= 0xFFFF && (class_ & 0xFFu) == 0x6F;
}

/* Bits of the fields flags and attr in RmMemoryParams and RmHeap: NVOS32_ALLOC_FLAGS_*,
 * NVOS32_ATTR_*. */
enum {
        RM_FLAG_HANDLE_GIVEN = 0x4000, /* RmHeap: `memory` is given; otherwise the driver makes a handle */
        RM_FLAG_VIRTUAL = 0x80000,     /* address ranges, not memory */
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
        RM_ATTR2_HUGE_SHIFT = 20, /* size of HUGE: 0 and 1 are 2 MiB */
        RM_ATTR2_HUGE_MASK = 3,
};

/* Parameters of an allocation of class 0x40. Before 545 the structure ends before numa_node. */
typedef struct RmMemoryParams { /* NV_MEMORY_ALLOCATION_PARAMS */
        uint32_t owner;         /* 0, ~0 and 0xDEAF0000 to 0xDEAF0003 are INVALID_OWNER */
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
        uint32_t device;        /* instance, of GET_ID_INFO */
        uint32_t client_share, target_client, target_device, flags, pad0;
        uint64_t va_size, va_start, va_limit;
        uint32_t va_mode, pad1;
} RmDeviceParams;

typedef struct RmSubdeviceParams { /* NV2080_ALLOC_PARAMETERS */
        uint32_t subdevice;
} RmSubdeviceParams;

RM_SIZE(RmMemoryParams, 128);
RM_AT(RmMemoryParams, attr, 24);
RM_AT(RmMemoryParams, size, 64);
RM_AT(RmMemoryParams, limit, 88);
RM_SIZE(RmDeviceParams, 56);
