/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The real functions of libcuda, found among the loaded objects, and the few driver types that the
 * hooks need. A function that an old driver lacks is 0, and its caller does without. */

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

/* Further functions that the hooks call. X(name) */
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
        X(cuPointerGetAttribute)                                                                             \
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
extern _Atomic uint64_t real_base; /* load address of the table's libcuda, stored last; 0: none */

/* Finds libcuda and fills the table; each call searches again, because it may have been unloaded
 * and loaded elsewhere. Of several objects with its name it takes one with its functions,
 * preferably one that calls ioctl(). False: not found. */
bool real_find(void);

/* Like real_find(), after a lookup returned a function that is not in the table. True: it belongs
 * to a libcuda, and the hook must be returned. With two drivers in one process the hooks call the
 * one that was initialized. */
bool real_owns(const char *symbol, uintptr_t function);

/* Records that the libcuda of the table was initialized, so the hooks keep calling it. */
void real_note_initialized(void);

/* Returns the function with that index; 0: libcuda lacks it or is not loaded. Another thread may be
 * filling the table: only an entry that is read after the base is one that libcuda lacks. */
static inline uintptr_t real_get(unsigned number) {
        uintptr_t p = atomic_load_explicit(&real_table[number], memory_order_acquire);

        if (p == 0 && (atomic_load_explicit(&real_base, memory_order_acquire) != 0 || real_find()))
                p = atomic_load_explicit(&real_table[number], memory_order_acquire);
        return p;
}

/* Whether this stream, or one that the default stream waits for, is being captured. The only query
 * that does not invalidate a capture. */
bool real_is_captured(CuHandle stream);
