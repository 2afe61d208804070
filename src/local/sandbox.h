/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The steps by which a new process shuts itself in. Called in the child, between clone and exec:
 * system calls only, no memory from the heap. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A file or directory of this machine that the container has besides. Its flags are the machine's,
 * with nosuid and nodev. */
typedef struct SandboxMount {
        const char *from, *to; /* to: below /run or /dev, or a file in /etc, which need not be there */
        bool read_only;
} SandboxMount;

enum { SANDBOX_MOUNTS = 160 };

/* Namespaces a container is born with. */
int sandbox_clone_flags(void);

/* In the parent, for a child that waits: inside it is root, outside an unprivileged user: nobody
 * (65534) when we are root and he is known here, else whoever we are. Returns 0 or negative
 * errno. */
int sandbox_map_ids(pid_t child);

/* In the child, when its ids are mapped. n: at most SANDBOX_MOUNTS. Returns 0, or negative errno
 * with the name of the step in *ret_step. */
int sandbox_enter(const char *hostname, const SandboxMount *mounts, size_t n, const char **ret_step);

/* In the process that will run the command, last before exec. large_files: it needs files that are
 * larger than what is stored in them, and many, as programs with simulated cards do: then neither
 * is bounded here. Returns 0 or negative errno. */
int sandbox_limit(bool large_files);
