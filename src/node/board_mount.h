/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The board of slices on a file system of its own. Containers write to the counters there, so one of them could fill what the board
 * stands on, and that is the host's /run: containerd and the kubelet live there. On a small tmpfs the worst it can do is that no
 * other slice is made (slice/board.h says so), and that the agent takes back within a second (node/board_watch.h).
 *
 * The kubelet's namespace must see it, because that is where containers' mounts come from: the mount that the path lies on must be a
 * shared one (mountPropagation: Bidirectional), and what pid 1 sees there is looked at afterwards. */

#include "base/fault.h"

enum {
        BOARD_MOUNT_E_LEFT = 1, /* the board stays on what it stands on; the fault says why */
};

/* Makes the path; mounts nothing where it is a mount already, and never over a board with slices on it: containers that run keep
 * the files that they have. proc: where the host's processes are seen. 0, BOARD_MOUNT_E_LEFT, or negative errno of a board that
 * cannot be made, both with a fault. */
int board_mount(const char *path, unsigned mib, const char *proc, Fault *fault);
