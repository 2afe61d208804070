/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The process that talks to the driver: forked without exec, with nothing of the agent's but its
 * memory as it was, one socket and standard error. It dies with the agent. One that is stuck in the
 * kernel does not even die by SIGKILL before it comes out: it is left behind, and looked after
 * without waiting. */

#include <stdbool.h>
#include <sys/types.h>

#include "gpu/cards/probe.h"

typedef struct CardChild {
        pid_t pid;
        int fd; /* SOCK_SEQPACKET, non-blocking */
} CardChild;

/* The caller has one thread. 0 or negative errno. */
int card_child_start(const ProbeOptions *options, CardChild *ret);

/* Closes the socket and kills; the process is still to be reaped. */
void card_child_kill(CardChild *c);

/* Without waiting. true: it is gone; *ret_status as waitpid() gives it, or -1 when somebody else
 * has reaped it. */
bool card_child_reap(pid_t pid, int *ret_status);
