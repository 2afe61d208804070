/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds the open file of a caller's descriptor. The kernel does not tell it to a FUSE server. But a
 * duplicate of the descriptor (pidfd_getfd(2), Linux 5.6) can be asked: a call on it comes to the
 * server like any other, with the file's own number. The thread that answers calls must not wait
 * for that, so a thread of its own asks. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* The call: answered with the file's number. */
#define SIM_WHICH_FILE _IOR('q', 0xA1, uint64_t)

typedef enum SimFinding {
        SIM_FIND_NUMBER, /* of a file of this server */
        SIM_FIND_DUPLICATE, /* of a memfd or a local socket; the close of other files could wait for this server */
} SimFinding;

typedef struct SimFinder SimFinder;

int sim_finder_new(SimFinder **ret); /* 0 or negative errno */
/* Waits for its thread, whose questions must be answered or fail meanwhile. Unanswered requests are
 * dropped. */
void sim_finder_free(SimFinder *f);
DEFINE_CLEANUP(SimFinder *, sim_finder_free)

/* Readable when there are new answers: first hear, then take all. Different threads may do the
 * two. */
int sim_finder_fd(const SimFinder *f);
void sim_finder_hear(SimFinder *f);

/* token: comes back with the answer. 0 or -ENOMEM. */
int sim_finder_ask(SimFinder *f, SimFinding what, pid_t process, int fd, uint64_t token);
/* Takes the next answer; false: none now. number: of the file; or the duplicate and 1, which the
 * caller closes. 0: no such descriptor, no right to it, not of that kind, or not possible on this
 * kernel. */
bool sim_finder_take(SimFinder *f, uint64_t *ret_token, uint64_t *ret_number);
