/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Functions that work in a stream exist twice: in a plain form, and for programs that were built
 * with one default stream per thread (_ptsz, _ptds). Both are made here from one inner function,
 * which takes the stream first:
 *
 *   static CUresult memcpy_async(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t n) {...}
 *   IN_STREAM(memcpy_async, cuMemcpyAsync, cuMemcpyAsync_ptsz,
 *             (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream), to, from, n)
 *
 * IN_DEFAULT is the same for functions without a stream among their parameters. */

#include "sim/cuda/stream.h"

#define IN_STREAM(inner, name, twin, parameters, ...)                                                        \
        CUDA_API CUresult name parameters {                                                                  \
                LOCKED;                                                                                      \
                return inner(stream, ##__VA_ARGS__);                                                         \
        }                                                                                                    \
        CUDA_API CUresult twin parameters {                                                                  \
                LOCKED;                                                                                      \
                return inner(stream ? stream : CU_STREAM_PER_THREAD, ##__VA_ARGS__);                         \
        }

#define IN_DEFAULT(inner, name, twin, parameters, ...)                                                       \
        CUDA_API CUresult name parameters {                                                                  \
                LOCKED;                                                                                      \
                return inner(CU_STREAM_LEGACY, ##__VA_ARGS__);                                               \
        }                                                                                                    \
        CUDA_API CUresult twin parameters {                                                                  \
                LOCKED;                                                                                      \
                return inner(CU_STREAM_PER_THREAD, ##__VA_ARGS__);                                           \
        }
