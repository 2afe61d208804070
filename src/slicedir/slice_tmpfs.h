/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A file system of its own for one slice: a tmpfs just large enough for its files. A container can
 * make its counters larger than they are, and take away what is in them; on a file system that
 * several share, what one gives up another one takes. On its own it fills nothing that anybody else
 * needs, at no time, and nobody has to be quicker than it.
 *
 * The size is twice what the files need, so that each can be replaced by a new one written beside
 * it. */

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

/* Mounts one on path, an empty directory, for a slice of n cards. proc: where the host's processes
 * are seen, because containers' mounts come from the host's namespace: what its pid 1 sees there
 * afterwards must be the same. 0, or negative errno with a fault, and nothing is mounted then:
 * -ENXIO the host would not see it, or it cannot be looked at what the host sees. */
int slice_tmpfs_mount(const char *path, size_t n, const char *proc, Fault *fault);

/* From here and from wherever the host shares its mounts; a container that has a file of it mounted
 * or mapped keeps that. 0 or negative errno. */
int slice_tmpfs_unmount(const char *path);

/* Does pid 1 of this proc see the same directory under this path? 0 yes, SLICE_TMPFS_E_UNSEEN no,
 * SLICE_TMPFS_E_UNKNOWN it cannot be looked at; both with a fault. Reading /proc/1/root needs
 * CAP_SYS_PTRACE (proc(5)). */
enum { SLICE_TMPFS_E_UNSEEN = 1, SLICE_TMPFS_E_UNKNOWN };
int slice_tmpfs_check_host(const char *path, const char *proc, Fault *fault);
