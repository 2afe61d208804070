/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The simulated driver as files (FUSE): nvidiactl, nvidiaN, nvidia-uvm, nvidia-uvm-tools, and
 * status. The kernel does what only it can do: it brings the system calls of any process, and
 * counts the copies of an open file over dup, fork, passing and death. The calls are answered one
 * after the other, on one thread; pages of mapped cards on another, at any time. */

#include "base/fault.h"
#include "sim/pages.h"
#include "sim/sim.h"

/* Inodes never change: who recognises the files by device and inode need not look again. */
enum {
        SIM_INODE_ROOT = 1,
        SIM_INODE_CTL,
        SIM_INODE_UVM,
        SIM_INODE_UVM_TOOLS,
        SIM_INODE_STATUS,
        SIM_INODE_CARDS = 16, /* that of nvidia0 */
};

typedef struct SimServer SimServer;

/* Mounts at dir. Others than the one who mounts may use it, as far as the kernel permits. 0 or
 * negative errno, fault with the sentence; s must live as long as the server. */
int sim_server_new(Sim *s, const char *dir, const SimPace *pace, SimServer **ret, Fault *fault);

/* In a process that will not serve, beside one that does or will: has the kernel ask for every file
 * below dir (as mounted) once, and returns when all are known. Before that two who open one at the
 * same time harm each other: Linux 6.16 and later drop a file which is looked up again while its
 * first answer is taken in (fuse_lookup() gives the entry its epoch only once others can see it),
 * and what was dropped can be opened, but not be mounted elsewhere: ENOENT. Gives up this process's
 * part of the session first, so that it ends with who serves. 0 or negative errno. */
int sim_server_look(const SimServer *v, const char *dir);

/* Answers until SIGTERM, SIGINT or SIGHUP comes, or somebody unmounts it. The caller has blocked
 * them. 0 or negative errno. */
int sim_server_run(SimServer *v);

/* Unmounts, and closes what is open: files of processes that still have them answer ENOTCONN from
 * now on. */
void sim_server_free(SimServer *v);
DEFINE_CLEANUP(SimServer *, sim_server_free)
