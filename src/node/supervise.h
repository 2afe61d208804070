/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent runs as a child of a process that does nothing else but start it again. While no agent
 * is registered the kubelet refuses pods, and what a container's own restart takes (a second at
 * first, then 10 s and more) is far too long for that. */

#include <sys/types.h>

typedef int (*SupervisedMain)(void *userdata);

/* Forks, and runs `run` in the child; returns in the parent only, when the child has ended by
 * itself with a status or a signal was passed on to it: its exit code. A child that was killed, or
 * crashed, is begun again at once; one that dies within a second of its start many times in a row,
 * ever later (to 10 s). The child dies with its parent. Call it before there is anything to share:
 * no event loop, no library, no thread. */
int supervise(SupervisedMain run, void *userdata);

/* Before supervise(): is called in the parent when another one of its children has ended. NULL:
 * nobody asks. */
void supervise_on_other_child(void (*ended)(void *userdata, pid_t pid));
