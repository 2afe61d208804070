/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A caller that is a process of this machine, stopped in its system call. Its memory is read and
 * written by process_vm_readv(2), which takes the same rights as ptrace(2); its other sides are in
 * /proc. */

#include <sys/types.h>

#include "sim/caller.h"

typedef struct PidSpace { /* a pid namespace, as stat(2) tells it from others */
        dev_t dev;
        ino_t ino;
} PidSpace;

typedef struct SimMount {
        uint64_t dev, ctl; /* as stat(2) shows the file system, and the inode of nvidiactl in it */
        PidSpace pids;     /* of this process: what the kernel's pids of callers are numbers of */
        bool proc;         /* /proc is that of this pid namespace */
} SimMount;

/* What holds for every caller of a mounted file system. Never asks the file system itself, which
 * this process must answer. 0 or negative errno. */
int sim_mount_init(SimMount *m, const char *dir, uint64_t ctl);

typedef struct SimProcessCaller {
        SimCaller caller;
        const SimMount *mount;
        pid_t tid;
        PidSpace pids; /* its own; {0}: not looked up yet */
        int fd; /* whoever makes this found out, maybe: one of its descriptors, and which open file that is */
        struct SimFile *file;
} SimProcessCaller;

void sim_process_caller_init(SimProcessCaller *p, const SimMount *m, pid_t tid, uint32_t uid);
