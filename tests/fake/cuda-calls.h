/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Prototypes of the driver API for the tests. The library declares none, because NVIDIA's headers
 * do that for programs. */

#include "sim/cuda/api_copy.h"
#include "sim/cuda/api_graph.h"
#include "sim/cuda/api_launch.h"
#include "sim/cuda/api_memory.h"
#include "sim/nvml/api.h"

CUresult cuInit(unsigned flags);
CUresult cuDeviceGetCount(int *ret);
CUresult cuDeviceGetUuid(CUuuid *ret, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext c);
CUresult cuCtxSetCurrent(CUcontext c);
CUresult cuCtxSynchronize(void);
CUresult cuMemGetInfo_v2(size_t *free_, size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t size);
CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *pitch, size_t width, size_t height, unsigned element);
CUresult cuMemFree_v2(CUdeviceptr at);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr at);
CUresult cuMemHostAlloc(void **ret, size_t size, unsigned flags);
CUresult cuMemFreeHost(void *p);
CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned flags);
CUresult cuMemHostUnregister(void *p);
CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t size, unsigned flags);
CUresult cuMemAllocAsync(CUdeviceptr *ret, size_t size, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t size, CUmemoryPool pool, CUstream stream);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device);
CUresult cuMemAddressReserve(CUdeviceptr *ret, size_t size, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr at, size_t size);
CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr at, size_t size);
CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const CUmemAccessDesc *list, size_t n);
CUresult cuMemExportToShareableHandle(void *ret, CUmemGenericAllocationHandle handle, int type,
                                      unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret, void *handle, int type);
CUresult cuImportExternalMemory(CUexternalMemory *ret, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc);
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *ret, CUexternalMemory m,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc);
CUresult cuDestroyExternalMemory(CUexternalMemory m);
CUresult cuIpcGetMemHandle(CUipcMemHandle *ret, CUdeviceptr at);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr at);
CUresult cuPointerGetAttribute(void *ret, CUpointer_attribute attribute, CUdeviceptr at);
CUresult cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc);
CUresult cuArrayCreate_v2(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *desc);
CUresult cuArrayDestroy(CUarray a);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels);
CUresult cuMipmappedArrayGetLevel(CUarray *ret, CUmipmappedArray m, unsigned level);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray m);
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream stream);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *box);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *flat);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream);
CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height);
CUresult cuStreamCreate(CUstream *ret, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream s);
CUresult cuStreamSynchronize(CUstream s);
CUresult cuStreamQuery(CUstream s);
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags);
CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags);
CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags);
CUresult cuStreamBeginCapture_v2(CUstream s, int mode);
CUresult cuStreamEndCapture(CUstream s, CUgraph *ret);
CUresult cuLaunchHostFunc(CUstream s, CUhostFn run, void *data);
CUresult cuEventCreate(CUevent *ret, unsigned flags);
CUresult cuEventDestroy_v2(CUevent e);
CUresult cuEventRecord(CUevent e, CUstream s);
CUresult cuEventQuery(CUevent e);
CUresult cuEventSynchronize(CUevent e);
CUresult cuEventElapsedTime_v2(float *ret, CUevent from, CUevent to);
CUresult cuModuleLoadData(CUmodule *ret, const void *image);
CUresult cuModuleUnload(CUmodule m);
CUresult cuModuleGetFunction(CUfunction *ret, CUmodule m, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *ret, size_t *size, CUmodule m, const char *name);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream s, void **params, void **extra);
CUresult cuGraphCreate(CUgraph *ret, unsigned flags);
CUresult cuGraphDestroy(CUgraph g);
CUresult cuGraphAddMemAllocNode(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n,
                                CUDA_MEM_ALLOC_NODE_PARAMS *p);
CUresult cuGraphAddMemsetNode(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n,
                              const CUDA_MEMSET_NODE_PARAMS *p, CUcontext c);
CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *d, size_t n);
CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph g, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec e, CUstream s);
CUresult cuGraphExecDestroy(CUgraphExec e);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuGetProcAddress_v2(const char *name, void **ret, int version, cuuint64_t flags, int *status);
CUresult cuGetErrorName(CUresult error, const char **ret);

NvmlReturn nvmlInit_v2(void);
NvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlHandle *ret);
NvmlReturn nvmlDeviceGetMemoryInfo(NvmlHandle h, NvmlMemory1 *ret);
NvmlReturn nvmlDeviceGetComputeRunningProcesses_v3(NvmlHandle h, unsigned *count, NvmlProcess2 *ret);
