/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions that are served for contexts, devices and modules: see names.h. */

/* Several to a line: clang-format would give each its own. */
/* clang-format off */
#define SERVED_CONTEXT(X)                                                                                    \
        X(cuCtxCreate, cuCtxCreate, 2000, false) X(cuCtxCreate, cuCtxCreate_v2, 3020, false)                 \
        X(cuCtxCreate, cuCtxCreate_v3, 11040, false) X(cuCtxCreate, cuCtxCreate_v4, 12050, false)            \
        X(cuCtxDestroy, cuCtxDestroy, 2000, false) X(cuCtxDestroy, cuCtxDestroy_v2, 4000, false)             \
        X(cuCtxDetach, cuCtxDetach, 2000, false) X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, false)            \
        X(cuCtxGetDevice, cuCtxGetDevice, 2000, false) X(cuCtxGetDevice, cuCtxGetDevice_v2, 13000, false)    \
        X(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, false)                                                  \
        X(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, false)                                                \
        X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, false) X(cuCtxSynchronize, cuCtxSynchronize, 2000, false)  \
        X(cuCtxSynchronize, cuCtxSynchronize_v2, 13000, false) X(cuDeviceGet, cuDeviceGet, 2000, false)      \
        X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, false)                                           \
        X(cuDeviceGetCount, cuDeviceGetCount, 2000, false)                                                   \
        X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, false)                                \
        X(cuDeviceGetName, cuDeviceGetName, 2000, false) X(cuDeviceGetUuid, cuDeviceGetUuid, 9020, false)    \
        X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, false)                                                 \
        X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, false)                               \
        X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, false)                             \
        X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, false)                                 \
        X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, false)                                   \
        X(cuDeviceTotalMem, cuDeviceTotalMem, 2000, false)                                                   \
        X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, false)                                                \
        X(cuDriverGetVersion, cuDriverGetVersion, 2020, false)                                               \
        X(cuFuncSetBlockShape, cuFuncSetBlockShape, 2000, false)                                             \
        X(cuGetErrorName, cuGetErrorName, 6000, false) X(cuGetExportTable, cuGetExportTable, 3000, false)    \
        X(cuGetProcAddress, cuGetProcAddress, 11030, false)                                                  \
        X(cuGetProcAddress, cuGetProcAddress_v2, 12000, false)                                               \
        X(cuGetProcAddress, cuGetProcAddress_v2_ptsz, 12000, true) X(cuInit, cuInit, 2000, false)            \
        X(cuModuleGetFunction, cuModuleGetFunction, 2000, false)                                             \
        X(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020, false)                                              \
        X(cuModuleLoadData, cuModuleLoadData, 2000, false) X(cuModuleUnload, cuModuleUnload, 2000, false)
/* clang-format on */
