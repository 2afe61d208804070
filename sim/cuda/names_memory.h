/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions that are served for memory: see names.h. */

/* Several to a line: clang-format would give each its own. */
/* clang-format off */
#define SERVED_MEMORY(X)                                                                                     \
        X(cuArray3DCreate, cuArray3DCreate_v2, 3020, false) X(cuArrayCreate, cuArrayCreate_v2, 3020, false)  \
        X(cuArrayDestroy, cuArrayDestroy, 2000, false)                                                       \
        X(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000, false)                                    \
        X(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer, 10000, false)                    \
        X(cuImportExternalMemory, cuImportExternalMemory, 10000, false)                                      \
        X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, false)                                             \
        X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, false)                                                 \
        X(cuIpcOpenMemHandle, cuIpcOpenMemHandle, 4010, false)                                               \
        X(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, 11000, false)                                           \
        X(cuMemAddressFree, cuMemAddressFree, 10020, false)                                                  \
        X(cuMemAddressReserve, cuMemAddressReserve, 10020, false)                                            \
        X(cuMemAllocAsync, cuMemAllocAsync, 11020, false)                                                    \
        X(cuMemAllocAsync, cuMemAllocAsync_ptsz, 11020, true)                                                \
        X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, false)                                    \
        X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz, 11020, true)                                \
        X(cuMemAllocManaged, cuMemAllocManaged, 6000, false)                                                 \
        X(cuMemAllocPitch, cuMemAllocPitch_v2, 3020, false) X(cuMemAlloc, cuMemAlloc_v2, 3020, false)        \
        X(cuMemCreate, cuMemCreate, 10020, false)                                                            \
        X(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020, false)                          \
        X(cuMemFreeAsync, cuMemFreeAsync, 11020, false) X(cuMemFreeAsync, cuMemFreeAsync_ptsz, 11020, true)  \
        X(cuMemFreeHost, cuMemFreeHost, 2000, false) X(cuMemFree, cuMemFree_v2, 3020, false)                 \
        X(cuMemGetAddressRange, cuMemGetAddressRange_v2, 3020, false)                                        \
        X(cuMemGetInfo, cuMemGetInfo_v2, 3020, false) X(cuMemHostAlloc, cuMemHostAlloc, 2020, false)         \
        X(cuMemHostRegister, cuMemHostRegister_v2, 6050, false)                                              \
        X(cuMemHostUnregister, cuMemHostUnregister, 4000, false)                                             \
        X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020, false)                      \
        X(cuMemMap, cuMemMap, 10020, false) X(cuMemPoolCreate, cuMemPoolCreate, 11020, false)                \
        X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, false)                                                  \
        X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020, false)                                        \
        X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020, false)                                        \
        X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, false) X(cuMemRelease, cuMemRelease, 10020, false)        \
        X(cuMemSetAccess, cuMemSetAccess, 10020, false) X(cuMemUnmap, cuMemUnmap, 10020, false)              \
        X(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000, false)                                       \
        X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, 5000, false)                                     \
        X(cuMipmappedArrayGetLevel, cuMipmappedArrayGetLevel, 5000, false)                                   \
        X(cuPointerGetAttribute, cuPointerGetAttribute, 4000, false)
/* clang-format on */
