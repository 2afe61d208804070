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
 * tests/unit/preload/memory/test-launches.c compares it with the simulated libcuda,
 * tests/blackbox/cuda_header.py with NVIDIA's header and the exports of its libcuda. */

/* Several per line: clang-format would put each on its own. */
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

/* After these calls a context with our events in it, or a stream that we query, may be gone. */
#define GATE_ENDS(X)                                                                                         \
        X(cuCtxDestroy, cuCtxDestroy, 0) X(cuCtxDestroy, cuCtxDestroy_v2, 0) X(cuCtxDetach, cuCtxDetach, 0)  \
        X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 0)                                           \
        X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 0)                                        \
        X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 0)                                               \
        X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 0)                                            \
        X(cuGreenCtxDestroy, cuGreenCtxDestroy, 0)                                                           \
        X(cuStreamDestroy, cuStreamDestroy, 0) X(cuStreamDestroy, cuStreamDestroy_v2, 0)

/* Before this call no file of the driver is open. */
#define GATE_STARTS(X) X(cuInit, cuInit, 0)

#define GATE_LOOKUPS(X)                                                                                      \
        X(cuGetProcAddress, cuGetProcAddress, 0) X(cuGetProcAddress, cuGetProcAddress_ptsz, 1)               \
        X(cuGetProcAddress, cuGetProcAddress_v2, 0) X(cuGetProcAddress, cuGetProcAddress_v2_ptsz, 1)

#define GATE_CUDA(X) GATE_LAUNCHES(X) GATE_HOSTS(X) GATE_STARTS(X) GATE_ENDS(X) GATE_LOOKUPS(X)
/* clang-format on */
