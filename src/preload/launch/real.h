/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The real functions of libcuda, found among what is loaded; and the few of its types that the gate
 * needs. All are optional: what an old driver lacks is 0, and who needs it does without. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/launch/launches.h"

typedef int CuResult;
typedef void *CuHandle; /* CUcontext, CUstream, CUevent, CUfunction, CUgraphExec */
typedef void (*CuHostFn)(void *data);
typedef struct CuUuid {
        uint8_t bytes[16];
} CuUuid;

enum {
        CU_SUCCESS = 0,
        CU_ERROR_NOT_INITIALIZED = 3,
        CU_ERROR_OPERATING_SYSTEM = 304,
        CU_ERROR_NOT_READY = 600,
        CU_STREAM_NON_BLOCKING_ = 1,
        CU_CAPTURE_RELAXED = 2,
};

/* What the gate itself calls. X(name) */
#define GATE_USES(X)                                                                                         \
        X(cuCtxGetCurrent)                                                                                   \
        X(cuCtxFromGreenCtx)                                                                                 \
        X(cuCtxGetDevice)                                                                                    \
        X(cuCtxPopCurrent_v2)                                                                                \
        X(cuCtxPushCurrent_v2)                                                                               \
        X(cuDeviceGetUuid)                                                                                   \
        X(cuDevicePrimaryCtxGetState)                                                                        \
        X(cuDevicePrimaryCtxRetain)                                                                          \
        X(cuEventCreate)                                                                                     \
        X(cuEventDestroy_v2)                                                                                 \
        X(cuEventElapsedTime)                                                                                \
        X(cuEventQuery)                                                                                      \
        X(cuEventRecord)                                                                                     \
        X(cuStreamCreate)                                                                                    \
        X(cuStreamGetCtx)                                                                                    \
        X(cuStreamIsCapturing)                                                                               \
        X(cuStreamQuery)                                                                                     \
        X(cuStreamWaitEvent)                                                                                 \
        X(cuThreadExchangeStreamCaptureMode)

#define REAL_NUMBER(name, symbol, twin) REAL_##symbol,
#define REAL_NUMBER_OF_USED(name)       REAL_##name,
enum {
        GATE_CUDA(REAL_NUMBER) REAL_HOOKED,
        REAL_FIRST_USED = REAL_HOOKED - 1,
        GATE_USES(REAL_NUMBER_OF_USED) REAL_ALL
};

extern _Atomic uintptr_t real_table[REAL_ALL];

/* Looks for libcuda and fills the table. Again at each call: it may have been unloaded and loaded
 * elsewhere. Several objects may have its name: it is one that has its functions, and calls ioctl()
 * if any of them does. false: it is not there. */
bool real_find(void);

/* The same, once somebody was given a function under that name that is not in the table. true: of
 * libcuda, and the gate's is to stand before it; where it is of a second driver, the gate's calls
 * the one that was initialized. */
bool real_gives(const char *symbol, uintptr_t function);

/* The one of the table has been initialized: it is the one that stays. */
void real_begins(void);

/* The function of that number; 0: libcuda does not have it, or is not there. */
static inline uintptr_t real_get(unsigned number) {
        uintptr_t p = atomic_load_explicit(&real_table[number], memory_order_acquire);

        return p != 0 || atomic_load_explicit(&real_table[REAL_cuCtxGetCurrent], memory_order_relaxed) != 0 ||
                               !real_find()
                       ? p
                       : atomic_load_explicit(&real_table[number], memory_order_acquire);
}

/* Whether somebody captures this stream, or one that the default stream would wait for. The only
 * question that a capture stands. */
bool real_is_captured(CuHandle stream);
