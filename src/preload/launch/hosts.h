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

#include "preload/launch/account.h"

typedef void (*CuCallback)(CuHandle stream, CuResult result, void *data);

typedef struct HostCall { /* one of the two, and what it is given */
        CuHostFn run;
        CuCallback back;
        void *data;
} HostCall;

/* What the driver is given instead, with hosts_run() or hosts_back(); NULL: there is no room, and
 * it gets the program's own. A place is free again when it is called. key: of its stream, as a
 * batch has it. */
typedef struct HostPlace HostPlace;
HostPlace *hosts_take(Account *a, uint32_t card, uintptr_t key, const HostCall *call);
void hosts_drop(Account *a, HostPlace *p); /* the driver did not take it */
void hosts_run(void *place);
void hosts_back(CuHandle stream, CuResult result, void *place);

/* In a child of fork nobody calls any of them. */
void hosts_begin_again(void);

/* When a launch has waited since then, and nothing in flight has begun: from when on that stands;
 * UINT64_MAX: no function is under way. */
uint64_t hosts_from(const Meter *m, uint64_t waits);
/* It does. said: the window is closed, and the row is to say that nothing is on the card. False:
 * that is known, and nothing has passed since. */
bool hosts_stand(Meter *m, bool said);
bool hosts_stands(const Meter *m); /* and the row says so */
void hosts_take_back(Meter *m);    /* the row is to say again what is in flight */
/* What stands is not counted, as long as the function is under way: one launch passes, then two,
 * and so on, each time that nothing goes on. */
bool hosts_excuse(const Meter *m);
/* ns that those take by themselves that a launch into this stream may be behind: 0 where none is in
 * it, or in the legacy one, which all wait for. Otherwise all, in the mean, one after the other,
 * because the driver may have one thread for them: what is left of the one that is under way, and
 * the others. */
uint64_t hosts_time(const Meter *m, uintptr_t key, uint64_t now);
void hosts_let_in(Meter *m, uint64_t now); /* a launch passes */
