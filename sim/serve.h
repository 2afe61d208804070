/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The simulated driver as files (FUSE): nvidiactl, nvidiaN, nvidia-uvm, nvidia-uvm-tools, and
 * status. The kernel brings the system calls of all processes, and counts the copies of an open
 * file over dup, fork, passing and death. One thread answers the calls, one after the other.
 * Another one answers for the pages of mapped cards, at any time. */

#include "base/fault.h"
#include "sim/pages.h"
#include "sim/sim.h"

/* Inodes never change: a program that recognises the files by device and inode need not look
 * again. */
enum {
        SIM_INODE_ROOT = 1,
        SIM_INODE_CTL,
        SIM_INODE_UVM,
        SIM_INODE_UVM_TOOLS,
        SIM_INODE_STATUS,
        SIM_INODE_CARDS = 16, /* of nvidia0 */
};

typedef struct SimServer SimServer;

typedef struct SimServerOptions {
        SimPace pace;
        bool no_locks; /* fcntl() locks of its files answer ENOLCK, as nvproxy's do (gVisor, vfs.NoLockFD) */
        const char *cgroups; /* where cgroup v2 is mounted, with an account of memory; outlives the server */
} SimServerOptions;

/* Mounts at dir. Other users may use it as far as the kernel permits. 0 or negative errno, with the
 * sentence in fault. s must outlive the server. */
int sim_server_new(Sim *s, const char *dir, const SimServerOptions *options, SimServer **ret, Fault *fault);

/* Has the kernel look up every file below dir (as mounted) once, and returns when all are known.
 * Called in a process that does not serve, beside the one that does.
 *
 * Before that, two processes that open one file at the same time disturb each other. Linux 6.16 and
 * later drop a file that is looked up again during its first answer: fuse_lookup() sets the entry's
 * epoch only after other processes can see it. A dropped file can be opened, but not mounted
 * elsewhere: ENOENT.
 *
 * Gives up this process's part of the session first, so that the session ends with the server. 0 or
 * negative errno. */
int sim_server_look(const SimServer *v, const char *dir);

/* Serves until SIGTERM, SIGINT or SIGHUP, which the caller has blocked, or until it is unmounted. 0
 * or negative errno. */
int sim_server_run(SimServer *v);

/* Unmounts, and closes the open files. In processes that have them they answer ENOTCONN from now
 * on. */
void sim_server_free(SimServer *v);
DEFINE_CLEANUP(SimServer *, sim_server_free)
