/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names of libcuda that the gate stands in front of, one list: X(name, symbol, twin).
 *
 * name    what cuGetProcAddress() is asked for
 * symbol  what libcuda exports, and the gate before it
 * twin    the form for programs that were built with one default stream per thread
 *
 * The list makes the exported names (libaliquot.map), the functions that dlsym(), dlvsym() and
 * cuGetProcAddress() give out, and the table of the real ones.
 * tests/unit/preload/memory/test-launches.c compares it with what the simulated libcuda serves,
 * tests/blackbox/cuda_header.py with what NVIDIA's header declares and its libcuda exports. */

/* Several to a line: clang-format would give each its own. */
/* clang-format off */
#define GATE_LAUNCHES(X)                                                                                     \
        X(cuLaunch, cuLaunch, 0) X(cuLaunchGrid, cuLaunchGrid, 0) X(cuLaunchGridAsync, cuLaunchGridAsync, 0) \
        X(cuLaunchKernel, cuLaunchKernel, 0) X(cuLaunchKernel, cuLaunchKernel_ptsz, 1)                       \
        X(cuLaunchKernelEx, cuLaunchKernelEx, 0) X(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, 1)               \
        X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 0)                                           \
        X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, 1)                                      \
        X(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice, 0)                     \
        X(cuGraphLaunch, cuGraphLaunch, 0) X(cuGraphLaunch, cuGraphLaunch_ptsz, 1)

/* Of the program's, which may wait for a launch; what stands behind them is measured apart. */
#define GATE_HOSTS(X)                                                                                        \
        X(cuLaunchHostFunc, cuLaunchHostFunc, 0) X(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, 1)               \
        X(cuStreamAddCallback, cuStreamAddCallback, 0) X(cuStreamAddCallback, cuStreamAddCallback_ptsz, 1)

/* After these a context may be gone, and the gate's events with it; or a stream that it would ask
 * about. */
#define GATE_ENDS(X)                                                                                         \
        X(cuCtxDestroy, cuCtxDestroy, 0) X(cuCtxDestroy, cuCtxDestroy_v2, 0) X(cuCtxDetach, cuCtxDetach, 0)  \
        X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 0)                                           \
        X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 0)                                        \
        X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 0)                                               \
        X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 0)                                            \
        X(cuGreenCtxDestroy, cuGreenCtxDestroy, 0)                                                           \
        X(cuStreamDestroy, cuStreamDestroy, 0) X(cuStreamDestroy, cuStreamDestroy_v2, 0)

/* Before this no file of the driver is open. */
#define GATE_STARTS(X) X(cuInit, cuInit, 0)

#define GATE_LOOKUPS(X)                                                                                      \
        X(cuGetProcAddress, cuGetProcAddress, 0) X(cuGetProcAddress, cuGetProcAddress_ptsz, 1)               \
        X(cuGetProcAddress, cuGetProcAddress_v2, 0) X(cuGetProcAddress, cuGetProcAddress_v2_ptsz, 1)

#define GATE_CUDA(X) GATE_LAUNCHES(X) GATE_HOSTS(X) GATE_STARTS(X) GATE_ENDS(X) GATE_LOOKUPS(X)
/* clang-format on */
