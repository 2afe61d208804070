/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions that are served for contexts, devices and modules: see names.h. */

/* Several to a line: clang-format would give each its own. */
/* clang-format off */
#define SERVED_CONTEXT(X)                                                                                    \
        X(cuCtxCreate, cuCtxCreate, 2000, false) X(cuCtxCreate, cuCtxCreate_v2, 3020, false)                 \
        X(cuCtxCreate, cuCtxCreate_v3, 11040, false) X(cuCtxCreate, cuCtxCreate_v4, 12050, false)            \
        X(cuCtxDestroy, cuCtxDestroy, 2000, false) X(cuCtxDestroy, cuCtxDestroy_v2, 4000, false)             \
        X(cuCtxDetach, cuCtxDetach, 2000, false)                                                             \
        X(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess, 4000, false)                                       \
        X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, false)                                         \
        X(cuCtxGetApiVersion, cuCtxGetApiVersion, 3020, false)                                               \
        X(cuCtxGetCacheConfig, cuCtxGetCacheConfig, 3020, false)                                             \
        X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, false) X(cuCtxGetDevice, cuCtxGetDevice, 2000, false)      \
        X(cuCtxGetDevice, cuCtxGetDevice_v2, 13000, false) X(cuCtxGetFlags, cuCtxGetFlags, 7000, false)      \
        X(cuCtxGetId, cuCtxGetId, 12000, false) X(cuCtxGetLimit, cuCtxGetLimit, 3010, false)                 \
        X(cuCtxGetSharedMemConfig, cuCtxGetSharedMemConfig, 4020, false)                                     \
        X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, false)                             \
        X(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, false)                                                  \
        X(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, false)                                                \
        X(cuCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000, false)                            \
        X(cuCtxSetCacheConfig, cuCtxSetCacheConfig, 3020, false)                                             \
        X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, false) X(cuCtxSetFlags, cuCtxSetFlags, 12010, false)       \
        X(cuCtxSetLimit, cuCtxSetLimit, 3010, false)                                                         \
        X(cuCtxSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020, false)                                     \
        X(cuCtxSynchronize, cuCtxSynchronize, 2000, false)                                                   \
        X(cuCtxSynchronize, cuCtxSynchronize_v2, 13000, false)                                               \
        X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, false)                                         \
        X(cuDeviceComputeCapability, cuDeviceComputeCapability, 2000, false)                                 \
        X(cuDeviceGet, cuDeviceGet, 2000, false) X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, false)  \
        X(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, 4010, false)                                         \
        X(cuDeviceGetCount, cuDeviceGetCount, 2000, false)                                                   \
        X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, false)                                \
        X(cuDeviceGetExecAffinitySupport, cuDeviceGetExecAffinitySupport, 11040, false)                      \
        X(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020, false)                                              \
        X(cuDeviceGetName, cuDeviceGetName, 2000, false)                                                     \
        X(cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute, 8000, false)                                     \
        X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, false)                                             \
        X(cuDeviceGetProperties, cuDeviceGetProperties, 2000, false)                                         \
        X(cuDeviceGetUuid, cuDeviceGetUuid, 9020, false)                                                     \
        X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, false)                                                 \
        X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, false)                               \
        X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, false)                             \
        X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, false)                                 \
        X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, false)                                   \
        X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, 11000, false)                           \
        X(cuDeviceSetMemPool, cuDeviceSetMemPool, 11020, false)                                              \
        X(cuDeviceTotalMem, cuDeviceTotalMem, 2000, false)                                                   \
        X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, false)                                                \
        X(cuDriverGetVersion, cuDriverGetVersion, 2020, false)                                               \
        X(cuFuncGetAttribute, cuFuncGetAttribute, 2020, false)                                               \
        X(cuFuncGetModule, cuFuncGetModule, 11000, false) X(cuFuncGetName, cuFuncGetName, 12030, false)      \
        X(cuFuncIsLoaded, cuFuncIsLoaded, 12040, false) X(cuFuncLoad, cuFuncLoad, 12040, false)              \
        X(cuFuncSetAttribute, cuFuncSetAttribute, 9000, false)                                               \
        X(cuFuncSetBlockShape, cuFuncSetBlockShape, 2000, false)                                             \
        X(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000, false)                                           \
        X(cuFuncSetSharedMemConfig, cuFuncSetSharedMemConfig, 4020, false)                                   \
        X(cuFuncSetSharedSize, cuFuncSetSharedSize, 2000, false)                                             \
        X(cuGetErrorName, cuGetErrorName, 6000, false) X(cuGetErrorString, cuGetErrorString, 6000, false)    \
        X(cuGetExportTable, cuGetExportTable, 3000, false)                                                   \
        X(cuGetProcAddress, cuGetProcAddress, 11030, false)                                                  \
        X(cuGetProcAddress, cuGetProcAddress_v2, 12000, false)                                               \
        X(cuGetProcAddress, cuGetProcAddress_v2_ptsz, 12000, true) X(cuInit, cuInit, 2000, false)            \
        X(cuKernelGetAttribute, cuKernelGetAttribute, 12000, false)                                          \
        X(cuKernelGetFunction, cuKernelGetFunction, 12000, false)                                            \
        X(cuKernelGetLibrary, cuKernelGetLibrary, 12050, false)                                              \
        X(cuKernelGetName, cuKernelGetName, 12030, false)                                                    \
        X(cuKernelSetAttribute, cuKernelSetAttribute, 12000, false)                                          \
        X(cuKernelSetCacheConfig, cuKernelSetCacheConfig, 12000, false)                                      \
        X(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040, false)                                \
        X(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000, false)                                              \
        X(cuLibraryGetKernel, cuLibraryGetKernel, 12000, false)                                              \
        X(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040, false)                                    \
        X(cuLibraryGetModule, cuLibraryGetModule, 12000, false)                                              \
        X(cuLibraryLoadData, cuLibraryLoadData, 12000, false)                                                \
        X(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, false)                                        \
        X(cuLibraryUnload, cuLibraryUnload, 12000, false)                                                    \
        X(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040, false)                              \
        X(cuModuleGetFunction, cuModuleGetFunction, 2000, false)                                             \
        X(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040, false)                                  \
        X(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020, false)                                              \
        X(cuModuleGetLoadingMode, cuModuleGetLoadingMode, 11070, false)                                      \
        X(cuModuleLoad, cuModuleLoad, 2000, false) X(cuModuleLoadData, cuModuleLoadData, 2000, false)        \
        X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, false)                                               \
        X(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, false)                                         \
        X(cuModuleUnload, cuModuleUnload, 2000, false)                                                       \
        X(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 10020, false)    \
        X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, false)\
        X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, false)\
        X(cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSize, 6050, false)                   \
        X(cuOccupancyMaxPotentialBlockSizeWithFlags, cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, false) \
        X(cuProfilerStart, cuProfilerStart, 4000, false) X(cuProfilerStop, cuProfilerStop, 4000, false)
/* clang-format on */
