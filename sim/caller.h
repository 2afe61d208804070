/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The process that makes a call: its memory, pids and descriptors, as far as the answer depends on
 * them. sim/process.h has real processes; tests have made-up ones. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/account.h"

typedef struct SimCaller SimCaller;

struct SimCaller {
        uint32_t uid;
        /* All n bytes, or -EFAULT. Nothing is read twice, because it can change in between. */
        int (*read)(SimCaller *c, uint64_t at, void *to, size_t n);
        int (*write)(SimCaller *c, uint64_t at, const void *from, size_t n);
        uint32_t (*pid)(SimCaller *c);                    /* its pid in the server's namespace */
        uint32_t (*pid_seen)(SimCaller *c, uint32_t pid); /* a pid in its namespace; 0: none */
        /* When the process of pid() started, by its clock ticks. With the pid it tells one process
         * from a later one. 0: not known. */
        uint64_t (*started)(SimCaller *c);
        /* The cgroup of a process that started at that time; false: it has ended. NULL in callers
         * that have no cgroup. */
        bool (*cgroup)(SimCaller *c, uint32_t pid, uint64_t started, SimCgroup *ret);
        /* The cgroup whose directory its descriptor is; false: it is none. */
        bool (*cgroup_at)(SimCaller *c, int fd, SimCgroup *ret);
        bool (*is_ctl)(SimCaller *c,
                       int fd); /* whether its descriptor fd is an open nvidiactl of this server */
        /* Which open file that is; NULL: none, or not known. Only for the descriptor of
         * sim_call_descriptor(). */
        struct SimFile *(*file)(SimCaller *c, int fd);
};
