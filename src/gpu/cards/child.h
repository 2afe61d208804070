/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The process that calls the driver: forked without exec. Of the agent it has a copy of the memory,
 * one socket and standard error, and it ends with the agent. A child that is stuck in the kernel
 * does not end by SIGKILL until it returns; it is left behind and reaped later, without waiting. */

#include <stdbool.h>
#include <sys/types.h>

#include "gpu/cards/probe.h"

typedef struct CardChild {
        pid_t pid;
        int fd; /* SOCK_SEQPACKET, non-blocking */
} CardChild;

/* Forks the child. The caller has one thread. Returns 0 or negative errno. */
int card_child_start(const ProbeOptions *options, CardChild *ret);

/* Closes the socket and kills the child, which must still be reaped. */
void card_child_kill(CardChild *c);

/* Reaps the child if it has ended, without waiting. Returns whether it has; *ret_status is as from
 * waitpid(), or -1 when it was reaped elsewhere. */
bool card_child_reap(pid_t pid, int *ret_status);
