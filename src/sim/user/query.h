/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls that only tools make, with their layouts: as rm/rm.h, from nv-ioctl.h, ctrl2080gpu.h, uvm_ioctl.h. */

#include "rm/rm.h"

enum {
        RM_CTRL_NAME_STRING = 0x20800110,
        RM_PIDS_MAX = 950,
        RM_PID_INFO_MAX = 200,
        RM_PIDS_BY_CLASS = 0, /* with a class: the processes that have an object of it */
        RM_PID_INFO_VIDEO_MEMORY = 0,
        RM_GID_ASCII = 0, /* flags of RM_CTRL_GID_INFO */
        RM_VERSION_QUERY = '2',
        RM_UVM_INITIALIZE = 0x30000001,
};

typedef struct RmVersion { /* nv_ioctl_rm_api_version_t */
        uint32_t cmd, reply;
        char text[64];
} RmVersion;

typedef struct RmCardInfo { /* nv_ioctl_card_info_t; RM_ESC_CARD_INFO takes an array of them */
        uint8_t valid, pad0[3];
        uint32_t domain;
        uint8_t bus, slot, function, pad1;
        uint16_t vendor, device_id;
        uint32_t gpu;
        uint16_t interrupt, pad2;
        uint64_t registers, registers_size, fb, fb_size;
        uint32_t minor;
        uint8_t name[10], pad3[2];
} RmCardInfo;

typedef struct RmNameString { /* NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS; older ones are 132 bytes long */
        uint32_t flags;
        char text[64];
        char rest[64];
} RmNameString;

typedef struct RmPids { /* NV2080_CTRL_GPU_GET_PIDS_PARAMS */
        uint32_t type, id, n;
        uint32_t pids[RM_PIDS_MAX];
} RmPids;

typedef struct RmPidInfo { /* NV2080_CTRL_GPU_PID_INFO */
        uint32_t pid, index, result, pad0;
        uint64_t private_, shared_owned, shared_duped, protected_[3]; /* bytes */
        uint32_t compute_instance, gpu_instance;
} RmPidInfo;

typedef struct RmPidInfos { /* NV2080_CTRL_GPU_GET_PID_INFO_PARAMS */
        uint32_t n, pad0;
        RmPidInfo list[RM_PID_INFO_MAX];
} RmPidInfos;

typedef struct RmUvmInitialize { /* UVM_INITIALIZE_PARAMS */
        uint64_t flags;
        uint32_t status, pad0;
} RmUvmInitialize;

RM_SIZE(RmVersion, 72);
RM_SIZE(RmCardInfo, 72);
RM_AT(RmCardInfo, gpu, 16);
RM_AT(RmCardInfo, minor, 56);
RM_SIZE(RmPids, 3812);
RM_SIZE(RmPidInfo, 72);
RM_AT(RmPidInfo, private_, 16);
RM_SIZE(RmPidInfos, 14408);
