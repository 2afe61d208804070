/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The types and numbers of NVML, declared here because nvml.h is not on the machines that build
 * this. Names, numbers and layouts are those of NVIDIA's NVML reference
 * (docs.nvidia.com/deploy/nvml-api). */

#include <stddef.h>
#include <stdint.h>

#define NVML_API __attribute__((visibility("default")))

/* X(name, number, words of nvmlErrorString) */
#define NVML_RETURNS(X)                                                                                      \
        X(NVML_SUCCESS, 0, "The operation was successful")                                                   \
        X(NVML_ERROR_UNINITIALIZED, 1, "Uninitialized")                                                      \
        X(NVML_ERROR_INVALID_ARGUMENT, 2, "Invalid Argument")                                                \
        X(NVML_ERROR_NOT_SUPPORTED, 3, "Not Supported")                                                      \
        X(NVML_ERROR_NO_PERMISSION, 4, "Insufficient Permissions")                                           \
        X(NVML_ERROR_ALREADY_INITIALIZED, 5, "Already Initialized")                                          \
        X(NVML_ERROR_NOT_FOUND, 6, "Not Found")                                                              \
        X(NVML_ERROR_INSUFFICIENT_SIZE, 7, "Insufficient Size")                                              \
        X(NVML_ERROR_INSUFFICIENT_POWER, 8, "Insufficient External Power")                                   \
        X(NVML_ERROR_DRIVER_NOT_LOADED, 9, "Driver Not Loaded")                                              \
        X(NVML_ERROR_TIMEOUT, 10, "Timeout")                                                                 \
        X(NVML_ERROR_IRQ_ISSUE, 11, "Interrupt Request Issue")                                               \
        X(NVML_ERROR_LIBRARY_NOT_FOUND, 12, "NVML Shared Library Not Found")                                 \
        X(NVML_ERROR_FUNCTION_NOT_FOUND, 13, "Function Not Found")                                           \
        X(NVML_ERROR_CORRUPTED_INFOROM, 14, "Corrupted infoROM")                                             \
        X(NVML_ERROR_GPU_IS_LOST, 15, "GPU is lost")                                                         \
        X(NVML_ERROR_RESET_REQUIRED, 16, "GPU requires reset")                                               \
        X(NVML_ERROR_OPERATING_SYSTEM, 17, "The operating system has blocked the request")                   \
        X(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18, "RM has detected an NVML/RM version mismatch")             \
        X(NVML_ERROR_IN_USE, 19, "In Use")                                                                   \
        X(NVML_ERROR_MEMORY, 20, "Insufficient Memory")                                                      \
        X(NVML_ERROR_NO_DATA, 21, "No data")                                                                 \
        X(NVML_ERROR_INSUFFICIENT_RESOURCES, 23, "Insufficient Resources")                                   \
        X(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25, "Argument version mismatch")                             \
        X(NVML_ERROR_UNKNOWN, 999, "Unknown Error")

#define NVML_RETURN_VALUE(name, number, words) name = number,
typedef enum NvmlReturn { NVML_RETURNS(NVML_RETURN_VALUE) } NvmlReturn;

typedef struct NvmlCard *NvmlHandle;

typedef struct NvmlMemory1 {
        unsigned long long total, free, used;
} NvmlMemory1;

typedef struct NvmlMemory2 {
        unsigned version;
        unsigned long long total, reserved, free, used;
} NvmlMemory2;

#define NVML_MEMORY_V2 ((unsigned) sizeof(NvmlMemory2) | 2u << 24)

typedef struct NvmlPci1 {
        char bus_id[16];
        unsigned domain, bus, device, device_id, subsystem_id, reserved[4];
} NvmlPci1;

typedef struct NvmlPci3 {
        char bus_id_legacy[16];
        unsigned domain, bus, device, device_id, subsystem_id;
        char bus_id[32];
} NvmlPci3;

/* nvmlIntNvLinkDeviceType_t, nvmlNvlinkVersion_t */
enum { NVML_NVLINK_TYPE_GPU = 0, NVML_NVLINK_TYPE_SWITCH = 2, NVML_NVLINK_VERSION_2 = 2 };

typedef struct NvmlProcess1 {
        unsigned pid;
        unsigned long long memory;
} NvmlProcess1;

typedef struct NvmlProcess2 { /* of _v2 and _v3 */
        unsigned pid;
        unsigned long long memory;
        unsigned gpu_instance, compute_instance;
} NvmlProcess2;

typedef struct NvmlUtilization {
        unsigned gpu, memory;
} NvmlUtilization;

typedef struct NvmlProcessSample { /* percent; time: microseconds since 1970 */
        unsigned pid;
        unsigned long long time;
        unsigned sm, memory, encoder, decoder;
} NvmlProcessSample;

/* nvmlSetMemoryLimits_v1_t and nvmlGetMemoryLimits_v1_t of 615: bytes; all ones is no limit */
typedef struct NvmlSetLimits {
        const char *path; /* of the cgroup's directory */
        unsigned long long soft, hard;
} NvmlSetLimits;

typedef struct NvmlGetLimits {
        const char *path;
        unsigned long long soft, hard, used;
} NvmlGetLimits;

typedef struct NvmlEventData {
        NvmlHandle device;
        unsigned long long type, data;
        unsigned gpu_instance, compute_instance;
} NvmlEventData;
