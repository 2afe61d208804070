/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A caller that is a process of this machine, stopped in its system call. Its memory is read and
 * written by process_vm_readv(2) and process_vm_writev(2), which need the rights of ptrace(2). The
 * rest is read from /proc. */

#include <sys/types.h>

#include "sim/caller.h"

typedef struct PidSpace { /* a pid namespace, as stat(2) identifies it */
        dev_t dev;
        ino_t ino;
} PidSpace;

typedef struct SimMount {
        uint64_t dev, ctl;   /* the file system and the inode of nvidiactl in it, by stat(2) */
        PidSpace pids;       /* of this process: callers' pids are numbers in it */
        bool proc;           /* /proc is that of this pid namespace */
        const char *cgroups; /* where the tree of cgroup v2 is mounted; NULL: callers have no cgroup */
        dev_t cgroup_dev;    /* of that tree */
} SimMount;

/* The facts about all callers of a mounted file system. Does not call the file system itself, which
 * this process serves. 0 or negative errno. */
int sim_mount_init(SimMount *m, const char *dir, uint64_t ctl);
/* cgroups: outlives it. 0 or negative errno. */
int sim_mount_cgroups(SimMount *m, const char *cgroups);
/* Whether the tree below `cgroups` has no such cgroup any more. */
bool sim_cgroup_is_gone(const char *cgroups, const char *path, uint64_t id);

typedef struct SimProcessCaller {
        SimCaller caller;
        const SimMount *mount;
        pid_t tid;
        PidSpace pids; /* its namespace; {0}: not looked up yet */
        int fd;        /* a descriptor of the caller and the open file that it is of, if that was looked up */
        struct SimFile *file;
} SimProcessCaller;

void sim_process_caller_init(SimProcessCaller *p, const SimMount *m, pid_t tid, uint32_t uid);
