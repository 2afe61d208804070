/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Host functions of the application in a stream (cuLaunchHostFunc, cuStreamAddCallback), which run
 * in a thread of the driver.
 *
 * A host function may wait for a lock that a thread with a held launch owns, for example that of an
 * interpreter. Then the work behind it in the stream cannot go on until the launch is admitted. So
 * the driver gets a function of ours, which notes when the application's begins and ends.
 *
 * Work in flight is *blocked* if a host function runs, a launch waits, and none of the work has
 * begun for longer than such functions take. Then the process reports no work on the card. Other
 * tenants do not wait for it, and its next window comes in turn. That window does not count the
 * blocked work (the backlog).
 *
 * The waiting time is learnt: it grows, up to four times, after a function that ended although no
 * launch was admitted, or went on although some were. It halves after one that ended when a launch
 * was admitted. */

#include "preload/launch/process.h"

typedef void (*CuCallback)(CuHandle stream, CuResult result, void *data);

typedef struct HostFunc { /* one of the two functions, and its argument */
        CuHostFn run;
        CuCallback back;
        void *data;
} HostFunc;

/* Takes a slot for a host function. The driver gets host_func_run() or host_func_callback() with
 * the slot instead. The slot is free again when it is called. key: of the stream, as in Batch.
 * NULL: no free slot, and the driver gets the application's function. */
typedef struct HostFuncSlot HostFuncSlot;
HostFuncSlot *host_func_take(ProcessState *a, uint32_t card, uintptr_t key, const HostFunc *call);
void host_func_drop(ProcessState *a, HostFuncSlot *p); /* the driver refused it */
void host_func_run(void *slot);
void host_func_callback(CuHandle stream, CuResult result, void *slot);

/* Frees all slots, in a child of fork: there no thread of the driver calls them. */
void host_func_reset(void);

/* When work in flight counts as blocked if a launch has waited since `waits` and none of the work
 * has begun; UINT64_MAX: no host function runs. */
uint64_t host_func_blocked_from(const ProcessUsage *m, uint64_t waits);
/* The work is blocked. reported: the window is closed, and the row reports no work on the card.
 * False: that was known, and no launch was admitted since. */
bool host_func_mark_blocked(ProcessUsage *m, bool reported);
bool host_func_is_blocked(const ProcessUsage *m); /* whether the row reports so */
void host_func_unblock(ProcessUsage *m);          /* the row reports work in flight again */
/* Whether blocked work is excluded from the depth, while its host function runs. Then one launch is
 * admitted; if the work stays blocked, two more, and so on. */
bool host_func_excludes_backlog(const ProcessUsage *m);
/* Expected run time, ns, of host functions that a launch into this stream may be behind; 0: none
 * in its stream or the legacy stream, which all wait for. They count one after another, because
 * the driver may have one thread for them: the rest of the running one and the mean time of the
 * others. */
uint64_t host_func_time(const ProcessUsage *m, uintptr_t key, uint64_t now);
void host_func_admitted(ProcessUsage *m, uint64_t now); /* a launch is admitted */
