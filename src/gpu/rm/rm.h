/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The boundary of NVIDIA's kernel driver: numbers and layouts of the calls that concern memory, as
 * its open kernel modules show them (nv_escape.h, nvos.h, nv-ioctl.h). layouts.txt has
 * them by release, and release.h what differs. Facts, and no code: the gate and the simulated
 * driver both use these headers. All is little endian, and pointers have 64 bits. libc only. */

#include "gpu/rm/class.h"
#include "gpu/rm/control.h"
#include "gpu/rm/heap.h"
#include "gpu/rm/layout.h"
#include "gpu/rm/nvstatus.h"

/* ---- ioctls of /dev/nvidiactl and /dev/nvidiaN ---- */

enum { RM_MAJOR = 195, RM_CTL_MINOR = 255 }; /* character devices; the minor is nvidiactl's */

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
        RM_ESC_EXPORT_DMA_BUF = 217,
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

/* RM_ESC_ALLOC_MEMORY allocates no memory of the card for any class. For 0x40 the driver makes an
 * object without memory, of class 0x70, or of 0xC2 for a privileged caller, which shows all of the
 * card. limit is the card's memory less one (rmapi_deprecated_allocmemory.c). */
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

typedef struct RmXfer { /* nv_ioctl_xfer_t: the real number, size and pointer */
        uint32_t cmd, size;
        uint64_t ptr;
} RmXfer;

enum { RM_XFER_MAX = 16384 }; /* NV_ABSOLUTE_MAX_IOCTL_SIZE */

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
RM_SIZE(RmXfer, 16);
