/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the agent as a child of a process that only restarts it. The kubelet refuses pods while no
 * agent is registered. Restarting the container would take too long for that: a second at first,
 * then 10 s and more. */

#include <sys/types.h>

typedef int (*SupervisedMain)(void *userdata);

/* Forks and runs `run` in the child, which is killed when its parent ends. Returns in the parent
 * only: the exit code, once the child has exited by itself or a signal was passed on to it.
 *
 * A child that was killed or crashed is restarted at once. If it dies within a second many times in
 * a row, restarts are delayed more and more, up to 10 s. Call it before there is an event loop, a
 * library or a thread. */
int supervise(SupervisedMain run, void *userdata);

/* Sets a callback for the end of other children of the parent. Call it before supervise(). */
void supervise_on_other_child(void (*ended)(void *userdata, pid_t pid));
