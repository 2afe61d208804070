/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The file systems of the slice directory. Containers write to the counters there, so a container
 * could fill the file system below them. That is the host's /run, which containerd and the kubelet
 * use, too. So each of the agent's slices is a small tmpfs (slice_tmpfs.h), which only one
 * container can fill. The directory itself is a tmpfs for the other slices: those of `aliquot run`,
 * and those that an earlier agent made, which are cut back within a second
 * (node/audit/slicedir_watch.h).
 *
 * Containers' mounts come from the kubelet's namespace, so that must see these file systems. The
 * mount below the path must be a shared one (mountPropagation: Bidirectional). What pid 1 sees
 * there is checked afterwards. */

#include <stdbool.h>

#include "base/fault.h"

enum {
        /* the directory or its slices have no tmpfs; the fault says why */
        SLICEDIR_TMPFS_E_MISSING = 1,
};

/* Makes the path and mounts a tmpfs of mib MiB on it, unless it is a mount already. Never mounts
 * over slices, because running containers keep the files that they have. Slices that each have a
 * tmpfs need none below them.
 *
 * *ret_own_tmpfs: new slices can have a tmpfs each; a trial mount decides, whatever the directory
 * itself has. proc: a mount of the host's procfs. Returns 0: the directory and its slices can have
 * one. With a fault: SLICEDIR_TMPFS_E_MISSING, or negative errno: the directory cannot be made. */
int slicedir_tmpfs_mount(const char *path, unsigned mib, const char *proc, bool *ret_own_tmpfs, Fault *fault);
