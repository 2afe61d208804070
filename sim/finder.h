/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A caller's descriptors. Which open file one is: the kernel does not tell a server of FUSE; but a
 * duplicate of the descriptor (pidfd_getfd(2), Linux 5.6) can be asked, by a call on it that comes
 * to the server as all calls do, with the file's own number. That must not be waited for by the
 * thread that answers calls, so a thread of its own asks. It touches nothing else. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* The call: answered with the file's number. */
#define SIM_WHICH_FILE _IOR('q', 0xA1, uint64_t)

typedef enum SimFinding {
        SIM_FIND_NUMBER,    /* of one of our files */
        SIM_FIND_DUPLICATE, /* of a memfd or a local socket; of nothing whose close could wait for us */
} SimFinding;

typedef struct SimFinder SimFinder;

int sim_finder_new(SimFinder **ret); /* 0 or negative errno */
/* Its thread's questions must be answered, or fail: it is waited for. What it was asked and has not
 * answered is forgotten. */
void sim_finder_free(SimFinder *f);
DEFINE_CLEANUP(SimFinder *, sim_finder_free)

/* Can be read when there are answers that nobody has heard of; hear, then take all. Both may be
 * done by different threads. */
int sim_finder_fd(const SimFinder *f);
void sim_finder_hear(SimFinder *f);

/* token: what the answer comes back with. 0 or -ENOMEM. */
int sim_finder_ask(SimFinder *f, SimFinding what, pid_t process, int fd, uint64_t token);
/* The next answer; false: none now. number: the file's, or the duplicate and one more, which is the
 * caller's to close. 0: no such descriptor, no right to it, not of that kind, or a kernel that
 * cannot. */
bool sim_finder_take(SimFinder *f, uint64_t *ret_token, uint64_t *ret_number);
