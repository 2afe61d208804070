/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The steps by which a new process isolates itself. Called in the child, between clone and exec:
 * system calls only, no memory from the heap. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A file or directory of this machine that is added to the container. It keeps the machine's flags,
 * with nosuid and nodev. */
typedef struct SandboxMount {
        /* to: below /run or /dev, or a file in /etc; it need not exist */
        const char *from, *to;
        bool read_only;
} SandboxMount;

enum { SANDBOX_MOUNTS = 160 };

/* Returns the CLONE_ flags for the namespaces of a new container. */
int sandbox_clone_flags(void);

/* Maps the ids of a waiting child. Called in the parent. Inside the child is root. Outside it is an
 * unprivileged user: nobody (65534) when this process is root and that id is mapped here, else our
 * own user. Returns 0 or negative errno. */
int sandbox_map_ids(pid_t child);

/* Isolates the child, when its ids are mapped. n: at most SANDBOX_MOUNTS. Returns 0, or negative
 * errno with the name of the step in *ret_step. */
int sandbox_enter(const char *hostname, const SandboxMount *mounts, size_t n, const char **ret_step);

/* Sets the resource limits. Called in the process that will run the command, last before exec.
 * large_files: it needs many and sparse files, as programs with simulated cards do, so neither is
 * limited. Returns 0 or negative errno. */
int sandbox_limit(bool large_files);
