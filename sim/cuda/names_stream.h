/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions that are served for streams, events and launches: see names.h. */

/* Several to a line: clang-format would give each its own. */
/* clang-format off */
#define SERVED_STREAM(X)                                                                                     \
        X(cuEventCreate, cuEventCreate, 2000, false) X(cuEventDestroy, cuEventDestroy, 2000, false)          \
        X(cuEventDestroy, cuEventDestroy_v2, 4000, false)                                                    \
        X(cuEventElapsedTime, cuEventElapsedTime, 2000, false)                                               \
        X(cuEventElapsedTime, cuEventElapsedTime_v2, 12080, false)                                           \
        X(cuEventQuery, cuEventQuery, 2000, false) X(cuEventRecord, cuEventRecord, 2000, false)              \
        X(cuEventRecord, cuEventRecord_ptsz, 7000, true)                                                     \
        X(cuEventSynchronize, cuEventSynchronize, 2000, false) X(cuLaunch, cuLaunch, 2000, false)            \
        X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, false)                                 \
        X(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice, 9000, false)           \
        X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, 9000, true)                             \
        X(cuLaunchGrid, cuLaunchGrid, 2000, false) X(cuLaunchGridAsync, cuLaunchGridAsync, 2000, false)      \
        X(cuLaunchHostFunc, cuLaunchHostFunc, 10000, false)                                                  \
        X(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, 10000, true)                                              \
        X(cuLaunchKernel, cuLaunchKernel, 4000, false) X(cuLaunchKernelEx, cuLaunchKernelEx, 11060, false)   \
        X(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, 11060, true)                                              \
        X(cuLaunchKernel, cuLaunchKernel_ptsz, 7000, true) X(cuParamSetSize, cuParamSetSize, 2000, false)    \
        X(cuParamSeti, cuParamSeti, 2000, false) X(cuStreamAddCallback, cuStreamAddCallback, 5000, false)    \
        X(cuStreamAddCallback, cuStreamAddCallback_ptsz, 7000, true)                                         \
        X(cuStreamBeginCapture, cuStreamBeginCapture, 10000, false)                                          \
        X(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, 10000, true)                                      \
        X(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, false)                                       \
        X(cuStreamBeginCapture, cuStreamBeginCapture_v2_ptsz, 10010, true)                                   \
        X(cuStreamCreate, cuStreamCreate, 2000, false) X(cuStreamDestroy, cuStreamDestroy_v2, 4000, false)   \
        X(cuStreamEndCapture, cuStreamEndCapture, 10000, false)                                              \
        X(cuStreamEndCapture, cuStreamEndCapture_ptsz, 10000, true)                                          \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo, 10010, false)                                      \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz, 10010, true)                                  \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, 11030, false)                                   \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2_ptsz, 11030, true)                               \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3, 12030, false)                                   \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3_ptsz, 12030, true)                               \
        X(cuStreamGetCtx, cuStreamGetCtx, 9020, false) X(cuStreamGetCtx, cuStreamGetCtx_ptsz, 9020, true)    \
        X(cuStreamIsCapturing, cuStreamIsCapturing, 10000, false)                                            \
        X(cuStreamIsCapturing, cuStreamIsCapturing_ptsz, 10000, true)                                        \
        X(cuStreamQuery, cuStreamQuery, 2000, false) X(cuStreamQuery, cuStreamQuery_ptsz, 7000, true)        \
        X(cuStreamSynchronize, cuStreamSynchronize, 2000, false)                                             \
        X(cuStreamSynchronize, cuStreamSynchronize_ptsz, 7000, true)                                         \
        X(cuStreamWaitEvent, cuStreamWaitEvent, 3020, false)                                                 \
        X(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, 7000, true)                                             \
        X(cuStreamWaitValue32, cuStreamWaitValue32, 8000, false)                                             \
        X(cuStreamWaitValue32, cuStreamWaitValue32_ptsz, 8000, true)                                         \
        X(cuStreamWaitValue32, cuStreamWaitValue32_v2, 11070, false)                                         \
        X(cuStreamWaitValue32, cuStreamWaitValue32_v2_ptsz, 11070, true)                                     \
        X(cuStreamWriteValue32, cuStreamWriteValue32, 8000, false)                                           \
        X(cuStreamWriteValue32, cuStreamWriteValue32_ptsz, 8000, true)                                       \
        X(cuStreamWriteValue32, cuStreamWriteValue32_v2, 11070, false)                                       \
        X(cuStreamWriteValue32, cuStreamWriteValue32_v2_ptsz, 11070, true)                                   \
        X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, false)
/* clang-format on */
