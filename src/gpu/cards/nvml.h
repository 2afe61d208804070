/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The part of NVML that is used here, declared anew: build machines have no nvml.h, and the library
 * is opened at run time. Names, numbers and layouts are those of NVIDIA's NVML reference
 * (docs.nvidia.com/deploy/nvml-api). They have been stable since driver 390. */

#include "base/fault.h"
#include "gpu/cards/nvml_calls.h"

typedef struct NvmlDeviceHandle *NvmlDevice;
typedef struct NvmlEventSetHandle *NvmlEventSet;

enum {
        NVML_SUCCESS = 0,
        NVML_ERROR_INVALID_ARGUMENT = 2,
        NVML_ERROR_NOT_SUPPORTED = 3,
        NVML_ERROR_NO_PERMISSION = 4,
        NVML_ERROR_NOT_FOUND = 6,
        NVML_ERROR_INSUFFICIENT_SIZE = 7,
        NVML_ERROR_TIMEOUT = 10,
        NVML_ERROR_OPERATING_SYSTEM = 17,
};

/* NVML_DEVICE_UUID_V2_BUFFER_SIZE and NVML_DEVICE_NAME_V2_BUFFER_SIZE */
enum { NVML_TEXT_SIZE = 96 };
enum { NVML_EVENT_XID = 8 }; /* nvmlEventTypeXidCriticalError */

/* nvmlGpuTopologyLevel_t */
enum {
        NVML_TOPOLOGY_INTERNAL = 0,
        NVML_TOPOLOGY_SINGLE = 10,
        NVML_TOPOLOGY_MULTIPLE = 20,
        NVML_TOPOLOGY_HOSTBRIDGE = 30,
        NVML_TOPOLOGY_NODE = 40,
        NVML_TOPOLOGY_SYSTEM = 50,
};
/* nvmlIntNvLinkDeviceType_t, nvmlNvlinkVersion_t, nvmlDeviceArchitecture_t */
enum { NVML_NVLINK_TYPE_GPU = 0, NVML_NVLINK_TYPE_SWITCH = 2 };
enum { NVML_NVLINK_VERSION_1 = 1, NVML_NVLINK_VERSION_5 = 7, NVML_ARCHITECTURE_BLACKWELL = 10 };
/* nvmlGpuP2PCapsIndex_t, nvmlGpuP2PStatus_t */
enum { NVML_P2P_READ = 0, NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_UNKNOWN = 6 };

typedef struct NvmlMemory { /* nvmlMemory_t: `total` is what nvidia-smi shows */
        unsigned long long total, free, used;
} NvmlMemory;

/* nvmlMemory_v2_t, since driver 510: `used` does not contain the driver's own part */
typedef struct NvmlMemory2 {
        unsigned version;
        unsigned long long total, reserved, free, used;
} NvmlMemory2;
#define NVML_MEMORY2_VERSION ((unsigned) (sizeof(NvmlMemory2) | 2u << 24))

typedef struct NvmlPci { /* nvmlPciInfo_t */
        char bus_id_legacy[16];
        unsigned domain, bus, device, device_id, subsystem_id;
        char bus_id[32];
} NvmlPci;

typedef struct NvmlProcess {      /* nvmlProcessInfo_t, as _v2 and _v3 of the calls use it */
        unsigned pid;             /* of the caller's pid namespace */
        unsigned long long bytes; /* all ones: not known */
        unsigned gpu_instance, compute_instance;
} NvmlProcess;

/* nvmlProcessUtilizationSample_t: percent of the time since the last sample seen */
typedef struct NvmlUse {
        unsigned pid;
        unsigned long long time; /* us since 1970, by the driver's clock */
        unsigned sm, memory, encoder, decoder;
} NvmlUse;

typedef struct NvmlEvent { /* nvmlEventData_t */
        NvmlDevice device;
        unsigned long long type, data;
        unsigned gpu_instance, compute_instance;
} NvmlEvent;

typedef struct NvmlConfComputeState {             /* nvmlConfComputeSystemState_t, in 535 and later */
        unsigned environment, feature, dev_tools; /* feature: 1 when it is on */
} NvmlConfComputeState;

/* nvmlSetMemoryLimits_v1_t and nvmlGetMemoryLimits_v1_t, in 615 and later: bytes. path: the
 * cgroup's directory in the mount namespace of the caller. */
typedef struct NvmlSetLimits {
        const char *path;
        unsigned long long soft, hard;
} NvmlSetLimits;

typedef struct NvmlGetLimits {
        const char *path;
        unsigned long long soft, hard, used;
} NvmlGetLimits;

_Static_assert(sizeof(void *) != 8 || (sizeof(NvmlSetLimits) == 24 && sizeof(NvmlGetLimits) == 32),
               "as NVML's reference has them");

#define NVML_MEMBER(member, needed, symbol, parameters) int(*member) parameters;

typedef struct Nvml {
        NVML_CALLS(NVML_MEMBER)
        const char *(*error_string)(int);
} Nvml;

enum { NVML_E_NONE = 1 };

/* Loads NVML for the life of the process. library: a path, or NULL for libnvidia-ml.so.1 by the
 * loader's search and then in the library folders below host_root. Returns 0, or NVML_E_NONE with a
 * fault. */
int nvml_load(const char *library, const char *host_root, Nvml *ret, Fault *fault);

const char *nvml_error_text(const Nvml *n, int r); /* never NULL */
