/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Host functions of the application in a stream (cuLaunchHostFunc, cuStreamAddCallback), which run
 * in a thread of the driver.
 *
 * A host function may wait for a lock that a thread with a held launch owns, for example that of an
 * interpreter. Then the work behind it in the stream cannot go on until the launch is admitted. So
 * the driver gets a function of ours, which notes while the application's runs: admission.c lets
 * a launch pass then. */

#include "preload/launch/process.h"

typedef void (*CuCallback)(CuHandle stream, CuResult result, void *data);

typedef struct HostFunc { /* one of the two functions, and its argument */
        CuHostFn run;
        CuCallback back;
        void *data;
} HostFunc;

/* Takes a slot for a host function. The driver gets host_func_run() or host_func_callback() with
 * the slot instead. The slot is free again when the function is called. NULL: no free slot, and the
 * driver gets the application's function. */
typedef struct HostFuncSlot HostFuncSlot;
HostFuncSlot *host_func_take(uint32_t card, const HostFunc *call);
void host_func_drop(HostFuncSlot *p); /* frees the slot, because the driver refused the function */
void host_func_run(void *slot);
void host_func_callback(CuHandle stream, CuResult result, void *slot);

/* Frees all slots, in a child of fork: there no thread of the driver calls them. */
void host_func_reset(void);
