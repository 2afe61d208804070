/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Functions of the program's that stand between launches of a stream (cuLaunchHostFunc,
 * cuStreamAddCallback), and are called by the driver's thread.
 *
 * One that has begun may want something that a launch holds while it is held here: an interpreter's
 * lock. Then what stands behind it never ends, and it is the gate that has it so. So the driver is
 * given a function of ours, which notes when the program's begins and ends. While one is under way,
 * a launch waits, and nothing that is in flight has begun, for longer than such functions take,
 * what is in flight *stands*: the card does nothing of it. Then the row says that nothing is on the
 * card, so that nobody waits for its end and the next window comes in its turn; and what stands is
 * not counted where that window has room.
 *
 * How long that is, is learnt: a function that ends though the launch is still held, or goes on
 * though some were let in, did not wait for them, and the next ones are given up to four times as
 * long; one that ends when a launch is let in, half of it. */

#include "preload/launch/process.h"

typedef void (*CuCallback)(CuHandle stream, CuResult result, void *data);

typedef struct HostFunc { /* one of the two, and what it is given */
        CuHostFn run;
        CuCallback back;
        void *data;
} HostFunc;

/* What the driver is given instead, with host_func_run() or host_func_callback(); NULL: there is no room, and
 * it gets the program's own. A place is free again when it is called. key: of its stream, as a
 * batch has it. */
typedef struct HostFuncSlot HostFuncSlot;
HostFuncSlot *host_func_take(ProcessState *a, uint32_t card, uintptr_t key, const HostFunc *call);
void host_func_drop(ProcessState *a, HostFuncSlot *p); /* the driver did not take it */
void host_func_run(void *place);
void host_func_callback(CuHandle stream, CuResult result, void *place);

/* In a child of fork nobody calls any of them. */
void host_func_reset(void);

/* When a launch has waited since then, and nothing in flight has begun: from when on that stands;
 * UINT64_MAX: no function is under way. */
uint64_t host_func_blocked_from(const ProcessUsage *m, uint64_t waits);
/* It does. said: the window is closed, and the row is to say that nothing is on the card. False:
 * that is known, and nothing has passed since. */
bool host_func_mark_blocked(ProcessUsage *m, bool reported);
bool host_func_is_blocked(const ProcessUsage *m); /* and the row says so */
void host_func_unblock(ProcessUsage *m);          /* the row is to say again what is in flight */
/* What stands is not counted, as long as the function is under way: one launch passes, then two,
 * and so on, each time that nothing goes on. */
bool host_func_excuses(const ProcessUsage *m);
/* ns that those take by themselves that a launch into this stream may be behind: 0 where none is in
 * it, or in the legacy one, which all wait for. Otherwise all, in the mean, one after the other,
 * because the driver may have one thread for them: what is left of the one that is under way, and
 * the others. */
uint64_t host_func_time(const ProcessUsage *m, uintptr_t key, uint64_t now);
void host_func_admitted(ProcessUsage *m, uint64_t now); /* a launch passes */
