/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* File systems for the board of slices. Containers write to the counters there, so one of them
 * could fill what they stand on, and that is the host's /run: containerd and the kubelet live
 * there. So each of the agent's slices is a small tmpfs (slicedir/slice_tmpfs.h), which one container
 * alone can fill; and the board is one, with what is left to stand on it: slices from before that,
 * which are cut back within a second (node/audit/slicedir_watch.h), and those of `aliquot run`.
 *
 * The kubelet's namespace must see them, because that is where containers' mounts come from: the
 * mount that the path lies on must be a shared one (mountPropagation: Bidirectional), and what pid
 * 1 sees there is looked at afterwards. */

#include <stdbool.h>

#include "base/fault.h"

enum {
        SLICEDIR_TMPFS_E_MISSING = 1, /* something stays on what it stands on; the fault says why */
};

/* Makes the path, and mounts mib on it; nothing where it is a mount already, and never over a board
 * with slices on it: containers that run keep the files that they have. Where all of these have
 * file systems of their own nothing is amiss. *ret_own_tmpfs: new slices can have file systems of their
 * own, which was tried, and does not depend on the board's having one. proc: where the host's
 * processes are seen. 0: both; SLICEDIR_TMPFS_E_MISSING, or negative errno of a board that cannot be
 * made, both with a fault. */
int slicedir_tmpfs_mount(const char *path, unsigned mib, const char *proc, bool *ret_own_tmpfs, Fault *fault);
