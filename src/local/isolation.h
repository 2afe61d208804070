/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The steps by which a new process shuts itself in. Called in the child, between clone and exec: system calls only, no
 * memory from the heap. */

#include <sys/types.h>

/* Namespaces a container is born with. */
int isolation_clone_flags(void);

/* In the parent, for a child that waits: inside it is root, outside an unprivileged user: nobody (65534) when we are
 * root, else whoever we are. Returns 0 or negative errno. */
int isolation_map_ids(pid_t child);

/* In the child, when its ids are mapped. Returns 0, or negative errno with the name of the step in *ret_step. */
int isolation_enter(const char *hostname, const char **ret_step);

/* In the process that will run the command, last before exec. */
int isolation_limit(void);
