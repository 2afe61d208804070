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
        X(cuParamSetf, cuParamSetf, 2000, false) X(cuParamSeti, cuParamSeti, 2000, false)                    \
        X(cuParamSetv, cuParamSetv, 2000, false) X(cuStreamAddCallback, cuStreamAddCallback, 5000, false)    \
        X(cuStreamAddCallback, cuStreamAddCallback_ptsz, 7000, true)                                         \
        X(cuStreamAttachMemAsync, cuStreamAttachMemAsync, 6000, false)                                       \
        X(cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz, 7000, true)                                   \
        X(cuStreamBatchMemOp, cuStreamBatchMemOp, 8000, false)                                               \
        X(cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz, 8000, true)                                           \
        X(cuStreamBatchMemOp, cuStreamBatchMemOp_v2, 11070, false)                                           \
        X(cuStreamBatchMemOp, cuStreamBatchMemOp_v2_ptsz, 11070, true)                                       \
        X(cuStreamBeginCapture, cuStreamBeginCapture, 10000, false)                                          \
        X(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, 10000, true)                                      \
        X(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, false)                                       \
        X(cuStreamBeginCapture, cuStreamBeginCapture_v2_ptsz, 10010, true)                                   \
        X(cuStreamCopyAttributes, cuStreamCopyAttributes, 11000, false)                                      \
        X(cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz, 11000, true)                                  \
        X(cuStreamCreate, cuStreamCreate, 2000, false)                                                       \
        X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, false)                               \
        X(cuStreamDestroy, cuStreamDestroy_v2, 4000, false)                                                  \
        X(cuStreamEndCapture, cuStreamEndCapture, 10000, false)                                              \
        X(cuStreamEndCapture, cuStreamEndCapture_ptsz, 10000, true)                                          \
        X(cuStreamGetAttribute, cuStreamGetAttribute, 11000, false)                                          \
        X(cuStreamGetAttribute, cuStreamGetAttribute_ptsz, 11000, true)                                      \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo, 10010, false)                                      \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz, 10010, true)                                  \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, 11030, false)                                   \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2_ptsz, 11030, true)                               \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3, 12030, false)                                   \
        X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3_ptsz, 12030, true)                               \
        X(cuStreamGetCtx, cuStreamGetCtx, 9020, false) X(cuStreamGetCtx, cuStreamGetCtx_ptsz, 9020, true)    \
        X(cuStreamGetDevice, cuStreamGetDevice, 12080, false)                                                \
        X(cuStreamGetDevice, cuStreamGetDevice_ptsz, 12080, true)                                            \
        X(cuStreamGetFlags, cuStreamGetFlags, 5050, false)                                                   \
        X(cuStreamGetFlags, cuStreamGetFlags_ptsz, 7000, true) X(cuStreamGetId, cuStreamGetId, 12000, false) \
        X(cuStreamGetId, cuStreamGetId_ptsz, 12000, true)                                                    \
        X(cuStreamGetPriority, cuStreamGetPriority, 5050, false)                                             \
        X(cuStreamGetPriority, cuStreamGetPriority_ptsz, 7000, true)                                         \
        X(cuStreamIsCapturing, cuStreamIsCapturing, 10000, false)                                            \
        X(cuStreamIsCapturing, cuStreamIsCapturing_ptsz, 10000, true)                                        \
        X(cuStreamQuery, cuStreamQuery, 2000, false) X(cuStreamQuery, cuStreamQuery_ptsz, 7000, true)        \
        X(cuStreamSetAttribute, cuStreamSetAttribute, 11000, false)                                          \
        X(cuStreamSetAttribute, cuStreamSetAttribute_ptsz, 11000, true)                                      \
        X(cuStreamSynchronize, cuStreamSynchronize, 2000, false)                                             \
        X(cuStreamSynchronize, cuStreamSynchronize_ptsz, 7000, true)                                         \
        X(cuStreamWaitEvent, cuStreamWaitEvent, 3020, false)                                                 \
        X(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, 7000, true)                                             \
        X(cuStreamWaitValue32, cuStreamWaitValue32, 8000, false)                                             \
        X(cuStreamWaitValue32, cuStreamWaitValue32_ptsz, 8000, true)                                         \
        X(cuStreamWaitValue32, cuStreamWaitValue32_v2, 11070, false)                                         \
        X(cuStreamWaitValue32, cuStreamWaitValue32_v2_ptsz, 11070, true)                                     \
        X(cuStreamWaitValue64, cuStreamWaitValue64, 9000, false)                                             \
        X(cuStreamWaitValue64, cuStreamWaitValue64_ptsz, 9000, true)                                         \
        X(cuStreamWaitValue64, cuStreamWaitValue64_v2, 11070, false)                                         \
        X(cuStreamWaitValue64, cuStreamWaitValue64_v2_ptsz, 11070, true)                                     \
        X(cuStreamWriteValue32, cuStreamWriteValue32, 8000, false)                                           \
        X(cuStreamWriteValue32, cuStreamWriteValue32_ptsz, 8000, true)                                       \
        X(cuStreamWriteValue32, cuStreamWriteValue32_v2, 11070, false)                                       \
        X(cuStreamWriteValue32, cuStreamWriteValue32_v2_ptsz, 11070, true)                                   \
        X(cuStreamWriteValue64, cuStreamWriteValue64, 9000, false)                                           \
        X(cuStreamWriteValue64, cuStreamWriteValue64_ptsz, 9000, true)                                       \
        X(cuStreamWriteValue64, cuStreamWriteValue64_v2, 11070, false)                                       \
        X(cuStreamWriteValue64, cuStreamWriteValue64_v2_ptsz, 11070, true)                                   \
        X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, false)
/* clang-format on */
