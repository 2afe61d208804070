/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the agent as a child of a process that only restarts it. The kubelet refuses pods while no
 * agent is registered. Restarting the container would take too long for that: a second at first,
 * then 10 s and more. */

#include <sys/types.h>

typedef int (*SupervisedMain)(void *userdata);

/* Forks and runs `run` in the child, which is killed when its parent ends. Returns in the parent
 * only: the child's exit code, or 3 where no child can be started. After SIGTERM or SIGINT was
 * passed on, it may be 128 plus the number of the signal that ended the child. It is 0 where
 * SIGTERM or SIGINT came during a delay.
 *
 * A child that was killed or crashed is restarted at once, or 10 ms later if it lived less than a
 * second. After many short lives in a row the delay grows up to 10 s. Call it before there is an
 * event loop, a library or a thread. */
int supervise(SupervisedMain run, void *userdata);

/* Sets a callback for the end of other children of the parent. Call it before supervise(). */
void supervise_on_other_child(void (*ended)(void *userdata, pid_t pid));
