/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The hooked functions of libcuda, one list: X(name, symbol, ptsz).
 *
 * name    the name for cuGetProcAddress()
 * symbol  the exported symbol of libcuda and of our hook
 * ptsz    1: the variant in which the default stream is the thread's own
 *
 * The list makes the exported names (libaliquot.map), the hooks that dlsym(), dlvsym() and
 * cuGetProcAddress() return, and the table of the real functions.
 * tests/unit/preload/launch/test-launches.c compares it with the simulated libcuda,
 * tests/blackbox/cuda_header.py with NVIDIA's header and the exports of its libcuda. */

/* Several entries per line: clang-format would put each on its own. */
/* clang-format off */
#define GATE_LAUNCHES(X)                                                                                     \
        X(cuLaunch, cuLaunch, 0) X(cuLaunchGrid, cuLaunchGrid, 0) X(cuLaunchGridAsync, cuLaunchGridAsync, 0) \
        X(cuLaunchKernel, cuLaunchKernel, 0) X(cuLaunchKernel, cuLaunchKernel_ptsz, 1)                       \
        X(cuLaunchKernelEx, cuLaunchKernelEx, 0) X(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, 1)               \
        X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 0)                                           \
        X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, 1)                                      \
        X(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice, 0)                     \
        X(cuGraphLaunch, cuGraphLaunch, 0) X(cuGraphLaunch, cuGraphLaunch_ptsz, 1)

/* Host functions of the application, which may wait for a launch; work before and after them is
 * measured apart. */
#define GATE_HOSTS(X)                                                                                        \
        X(cuLaunchHostFunc, cuLaunchHostFunc, 0) X(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, 1)               \
        X(cuStreamAddCallback, cuStreamAddCallback, 0) X(cuStreamAddCallback, cuStreamAddCallback_ptsz, 1)

/* Calls after which a context with our events in it, or a stream that we query, may be gone. */
#define GATE_ENDS(X)                                                                                         \
        X(cuCtxDestroy, cuCtxDestroy, 0) X(cuCtxDestroy, cuCtxDestroy_v2, 0) X(cuCtxDetach, cuCtxDetach, 0)  \
        X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 0)                                           \
        X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 0)                                        \
        X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 0)                                               \
        X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 0)                                            \
        X(cuGreenCtxDestroy, cuGreenCtxDestroy, 0)                                                           \
        X(cuStreamDestroy, cuStreamDestroy, 0) X(cuStreamDestroy, cuStreamDestroy_v2, 0)

/* Before cuInit() no file of the driver is open, so its calls are redirected here. */
#define GATE_STARTS(X) X(cuInit, cuInit, 0)

#define GATE_LOOKUPS(X)                                                                                      \
        X(cuGetProcAddress, cuGetProcAddress, 0) X(cuGetProcAddress, cuGetProcAddress_ptsz, 1)               \
        X(cuGetProcAddress, cuGetProcAddress_v2, 0) X(cuGetProcAddress, cuGetProcAddress_v2_ptsz, 1)

/* Copies and fills. Which of them are held is decided by their ends (copy_hooks.c). Copies in
 * batches are never held, nor are prefetches. The functions without _v2 take addresses of 32 bits,
 * which no memory of today's cards has. */
#define GATE_COPY(X, name, symbol, own) X(name, symbol, 0) X(name, symbol##_##own, 1)
#define GATE_COPIES(X)                                                                                       \
        GATE_COPY(X, cuMemcpy, cuMemcpy, ptds) GATE_COPY(X, cuMemcpyAsync, cuMemcpyAsync, ptsz)              \
        GATE_COPY(X, cuMemcpyHtoD, cuMemcpyHtoD_v2, ptds) GATE_COPY(X, cuMemcpyDtoD, cuMemcpyDtoD_v2, ptds)  \
        GATE_COPY(X, cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, ptsz)                                          \
        GATE_COPY(X, cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, ptsz)                                          \
        GATE_COPY(X, cuMemcpyDtoH, cuMemcpyDtoH_v2, ptds) GATE_COPY(X, cuMemcpyAtoH, cuMemcpyAtoH_v2, ptds)  \
        GATE_COPY(X, cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, ptsz)                                          \
        GATE_COPY(X, cuMemcpyAtoHAsync, cuMemcpyAtoHAsync_v2, ptsz)                                          \
        GATE_COPY(X, cuMemcpyPeer, cuMemcpyPeer, ptds) GATE_COPY(X, cuMemcpy3DPeer, cuMemcpy3DPeer, ptds)    \
        GATE_COPY(X, cuMemcpyPeerAsync, cuMemcpyPeerAsync, ptsz)                                             \
        GATE_COPY(X, cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, ptsz)                                         \
        GATE_COPY(X, cuMemcpyHtoA, cuMemcpyHtoA_v2, ptds) GATE_COPY(X, cuMemcpyDtoA, cuMemcpyDtoA_v2, ptds)  \
        GATE_COPY(X, cuMemcpyAtoD, cuMemcpyAtoD_v2, ptds) GATE_COPY(X, cuMemcpyAtoA, cuMemcpyAtoA_v2, ptds)  \
        GATE_COPY(X, cuMemcpyHtoAAsync, cuMemcpyHtoAAsync_v2, ptsz)                                          \
        GATE_COPY(X, cuMemcpy2D, cuMemcpy2D_v2, ptds) GATE_COPY(X, cuMemcpy3D, cuMemcpy3D_v2, ptds)          \
        GATE_COPY(X, cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, ptds)                                      \
        GATE_COPY(X, cuMemcpy2DAsync, cuMemcpy2DAsync_v2, ptsz)                                              \
        GATE_COPY(X, cuMemcpy3DAsync, cuMemcpy3DAsync_v2, ptsz)                                              \
        GATE_COPY(X, cuMemsetD8, cuMemsetD8_v2, ptds) GATE_COPY(X, cuMemsetD16, cuMemsetD16_v2, ptds)        \
        GATE_COPY(X, cuMemsetD32, cuMemsetD32_v2, ptds) GATE_COPY(X, cuMemsetD2D8, cuMemsetD2D8_v2, ptds)    \
        GATE_COPY(X, cuMemsetD2D16, cuMemsetD2D16_v2, ptds)                                                  \
        GATE_COPY(X, cuMemsetD2D32, cuMemsetD2D32_v2, ptds)                                                  \
        GATE_COPY(X, cuMemsetD8Async, cuMemsetD8Async, ptsz)                                                 \
        GATE_COPY(X, cuMemsetD16Async, cuMemsetD16Async, ptsz)                                               \
        GATE_COPY(X, cuMemsetD32Async, cuMemsetD32Async, ptsz)                                               \
        GATE_COPY(X, cuMemsetD2D8Async, cuMemsetD2D8Async, ptsz)                                             \
        GATE_COPY(X, cuMemsetD2D16Async, cuMemsetD2D16Async, ptsz)                                           \
        GATE_COPY(X, cuMemsetD2D32Async, cuMemsetD2D32Async, ptsz)

#define GATE_CUDA(X)                                                                                         \
        GATE_LAUNCHES(X) GATE_HOSTS(X) GATE_STARTS(X) GATE_COPIES(X) GATE_ENDS(X) GATE_LOOKUPS(X)
/* clang-format on */
