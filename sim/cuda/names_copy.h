/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions that are served for copies: see names.h. */

/* Several to a line: clang-format would give each its own. */
/* clang-format off */
#define SERVED_COPY(X)                                                                                       \
        X(cuMemcpy, cuMemcpy, 4000, false) X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, false)               \
        X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2_ptsz, 7000, true)                                              \
        X(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, 3020, false)                                          \
        X(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2_ptds, 7000, true)                                      \
        X(cuMemcpy2D, cuMemcpy2D_v2, 3020, false) X(cuMemcpy2D, cuMemcpy2D_v2_ptds, 7000, true)              \
        X(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, 3020, false)                                                  \
        X(cuMemcpy3DAsync, cuMemcpy3DAsync_v2_ptsz, 7000, true) X(cuMemcpy3D, cuMemcpy3D_v2, 3020, false)    \
        X(cuMemcpy3D, cuMemcpy3D_v2_ptds, 7000, true) X(cuMemcpyAsync, cuMemcpyAsync, 4000, false)           \
        X(cuMemcpyAsync, cuMemcpyAsync_ptsz, 7000, true) X(cuMemcpyAtoA, cuMemcpyAtoA_v2, 3020, false)       \
        X(cuMemcpyAtoA, cuMemcpyAtoA_v2_ptds, 7000, true) X(cuMemcpyAtoD, cuMemcpyAtoD_v2, 3020, false)      \
        X(cuMemcpyAtoD, cuMemcpyAtoD_v2_ptds, 7000, true) X(cuMemcpyAtoH, cuMemcpyAtoH_v2, 3020, false)      \
        X(cuMemcpyAtoH, cuMemcpyAtoH_v2_ptds, 7000, true) X(cuMemcpyDtoA, cuMemcpyDtoA_v2, 3020, false)      \
        X(cuMemcpyDtoA, cuMemcpyDtoA_v2_ptds, 7000, true)                                                    \
        X(cuMemcpy3DPeer, cuMemcpy3DPeer, 4000, false) X(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, 7000, true)    \
        X(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, 4000, false)                                             \
        X(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz, 7000, true)                                         \
        X(cuMemcpyAtoHAsync, cuMemcpyAtoHAsync_v2, 3020, false)                                              \
        X(cuMemcpyAtoHAsync, cuMemcpyAtoHAsync_v2_ptsz, 7000, true)                                          \
        X(cuMemcpyPeer, cuMemcpyPeer, 4000, false) X(cuMemcpyPeer, cuMemcpyPeer_ptds, 7000, true)            \
        X(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000, false)                                                 \
        X(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz, 7000, true)                                             \
        X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, false)                                              \
        X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2_ptsz, 7000, true)                                          \
        X(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020, false) X(cuMemcpyDtoD, cuMemcpyDtoD_v2_ptds, 7000, true)      \
        X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, false)                                              \
        X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2_ptsz, 7000, true)                                          \
        X(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, false) X(cuMemcpyDtoH, cuMemcpyDtoH_v2_ptds, 7000, true)      \
        X(cuMemcpyHtoAAsync, cuMemcpyHtoAAsync_v2, 3020, false)                                              \
        X(cuMemcpyHtoAAsync, cuMemcpyHtoAAsync_v2_ptsz, 7000, true)                                          \
        X(cuMemcpyHtoA, cuMemcpyHtoA_v2, 3020, false) X(cuMemcpyHtoA, cuMemcpyHtoA_v2_ptds, 7000, true)      \
        X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, false)                                              \
        X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2_ptsz, 7000, true)                                          \
        X(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, false) X(cuMemcpyHtoD, cuMemcpyHtoD_v2_ptds, 7000, true)      \
        X(cuMemcpy, cuMemcpy_ptds, 7000, true) X(cuMemsetD16Async, cuMemsetD16Async, 3020, false)            \
        X(cuMemsetD16Async, cuMemsetD16Async_ptsz, 7000, true) X(cuMemsetD16, cuMemsetD16_v2, 3020, false)   \
        X(cuMemsetD16, cuMemsetD16_v2_ptds, 7000, true)                                                      \
        X(cuMemsetD2D16Async, cuMemsetD2D16Async, 3020, false)                                               \
        X(cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz, 7000, true)                                           \
        X(cuMemsetD2D16, cuMemsetD2D16_v2, 3020, false) X(cuMemsetD2D16, cuMemsetD2D16_v2_ptds, 7000, true)  \
        X(cuMemsetD2D32Async, cuMemsetD2D32Async, 3020, false)                                               \
        X(cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz, 7000, true)                                           \
        X(cuMemsetD2D32, cuMemsetD2D32_v2, 3020, false) X(cuMemsetD2D32, cuMemsetD2D32_v2_ptds, 7000, true)  \
        X(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020, false)                                                 \
        X(cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz, 7000, true)                                             \
        X(cuMemsetD2D8, cuMemsetD2D8_v2, 3020, false) X(cuMemsetD2D8, cuMemsetD2D8_v2_ptds, 7000, true)      \
        X(cuMemsetD32Async, cuMemsetD32Async, 3020, false)                                                   \
        X(cuMemsetD32Async, cuMemsetD32Async_ptsz, 7000, true) X(cuMemsetD32, cuMemsetD32_v2, 3020, false)   \
        X(cuMemsetD32, cuMemsetD32_v2_ptds, 7000, true) X(cuMemsetD8Async, cuMemsetD8Async, 3020, false)     \
        X(cuMemsetD8Async, cuMemsetD8Async_ptsz, 7000, true) X(cuMemsetD8, cuMemsetD8_v2, 3020, false)       \
        X(cuMemsetD8, cuMemsetD8_v2_ptds, 7000, true)
/* clang-format on */
