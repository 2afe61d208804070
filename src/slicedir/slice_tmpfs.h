/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A file system for one slice: a tmpfs just large enough for its files. A container can enlarge its
 * counters, and so take the space of all files on the same file system. On a tmpfs of its own it
 * can fill nothing that others need.
 *
 * The size is twice what the files need, so that a new file can be written beside each. */

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

/* Mounts a tmpfs on path, an empty directory, for a slice of n cards. proc: a mount of the host's
 * procfs. Containers' mounts come from the host's namespace, so pid 1 must see the same file system
 * there. 0, or negative errno with a fault, and nothing is mounted; -ENXIO: the host does not see
 * it, or its view is not accessible. */
int slice_tmpfs_mount(const char *path, size_t n, const char *proc, Fault *fault);

/* Unmounts the slice's tmpfs here and in the namespaces that share the host's mounts. A container
 * that has a file of it mounted or mapped keeps the file. Returns 0, or negative errno. */
int slice_tmpfs_unmount(const char *path);

/* Does pid 1 of this proc see the same directory under this path? 0: yes. With a fault:
 * SLICE_TMPFS_E_UNSEEN: no; SLICE_TMPFS_E_UNKNOWN: /proc/1/root is not readable, which needs
 * CAP_SYS_PTRACE (proc(5)). */
enum { SLICE_TMPFS_E_UNSEEN = 1, SLICE_TMPFS_E_UNKNOWN };
int slice_tmpfs_check_host(const char *path, const char *proc, Fault *fault);
