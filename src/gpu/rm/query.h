/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Queries of the driver's version, cards and processes; sources as in rm.h. libc only. */

#include "gpu/rm/rm.h"

typedef struct RmRegisterFd { /* nv_ioctl_register_fd_t */
        int32_t ctl;
} RmRegisterFd;

/* RM_ESC_CHECK_VERSION. A version that does not match is answered with the right one and EINVAL. */
enum { RM_VERSION_STRICT = 0, RM_VERSION_RELAXED = '1', RM_VERSION_QUERY = '2' };

typedef struct RmVersion {   /* nv_ioctl_rm_api_version_t */
        uint32_t cmd, reply; /* reply: 1, understood */
        char version[64];
} RmVersion;

typedef struct RmCardInfo { /* nv_ioctl_card_info_t; RM_ESC_CARD_INFO takes an array of them */
        uint8_t valid, pad0[3];
        uint32_t domain;
        uint8_t bus, slot, function, pad1;
        uint16_t vendor, device;
        uint32_t gpu;
        uint16_t interrupt;
        uint16_t pad2;
        uint64_t reg_at, reg_bytes, fb_at, fb_bytes;
        uint32_t minor;
        uint8_t name[10], pad4[2];
} RmCardInfo;

typedef struct RmAttachedIds { /* NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS */
        uint32_t gpus[RM_ATTACHED_MAX];
} RmAttachedIds;

typedef struct RmProbedIds { /* NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS */
        uint32_t gpus[RM_ATTACHED_MAX], excluded[RM_ATTACHED_MAX], flags[RM_ATTACHED_MAX];
} RmProbedIds;

typedef struct RmNameString { /* NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS */
        uint32_t flags;
        uint8_t name[64];
} RmNameString;

typedef struct RmCtxBufferSize { /* NV2080_CTRL_GR_GET_CTX_BUFFER_SIZE_PARAMS */
        uint32_t channel, pad0;  /* a channel or a channel group */
        uint64_t bytes;
} RmCtxBufferSize;

/* Processes by card. Pids are those of the caller's pid namespace; a process that it cannot see is
 * left out. */
enum { RM_PIDS_MAX = 950, RM_PID_INFO_MAX = 200, RM_PIDS_BY_CLASS = 0, RM_PID_INFO_VIDMEM = 0 };

typedef struct RmPids {    /* NV2080_CTRL_GPU_GET_PIDS_PARAMS */
        uint32_t type, id; /* id: a class: processes with such an object; 0x2080: that opened the card */
        uint32_t n;        /* out */
        uint32_t pids[RM_PIDS_MAX];
} RmPids;

typedef struct RmPidInfo { /* NV2080_CTRL_GPU_PID_INFO: bytes of class 0x40, by duplication */
        uint32_t pid, index, result, pad0;
        uint64_t exclusive, shared_owned, shared_duped, protected_[3];
        uint32_t compute_instance, gpu_instance; /* ~0: no MIG */
} RmPidInfo;

typedef struct RmPidInfos { /* NV2080_CTRL_GPU_GET_PID_INFO_PARAMS */
        uint32_t n, pad0;
        RmPidInfo list[RM_PID_INFO_MAX];
} RmPidInfos;

RM_SIZE(RmVersion, 72);
RM_SIZE(RmCardInfo, 72);
RM_AT(RmCardInfo, vendor, 12);
RM_AT(RmCardInfo, gpu, 16);
RM_AT(RmCardInfo, reg_at, 24);
RM_AT(RmCardInfo, minor, 56);
RM_SIZE(RmProbedIds, 384);
RM_SIZE(RmNameString, 68);
RM_SIZE(RmCtxBufferSize, 16);
RM_SIZE(RmPids, 3812);
RM_SIZE(RmPidInfo, 72);
RM_SIZE(RmPidInfos, 14408);
