/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a process is paused and so cannot report anything: stopped (base/process_stat.h) or
 * frozen. A frozen cgroup shows as "frozen 1" in cgroup.events (version 2) or "FROZEN" in
 * freezer.state (version 1), also when only an ancestor was frozen. The state of the process does
 * not show it: S in version 2, D in version 1. */

#include "base/buf.h"

/* Whether the process is stopped or frozen. False when it has ended. proc, root: where the host's
 * proc and its cgroup tree are mounted. root may be NULL: then cgroups are not read. */
bool process_state_is_paused(const char *proc, const char *root, uint32_t pid);

/* The path of one controller in /proc/PID/cgroup, which may be any bytes. controller: "" for
 * version 2, or "freezer". Leading "/.." parts, which point above this program's cgroup namespace,
 * are removed, so the path may start below the root. Returns an empty string when there is none. */
Str process_state_cgroup_path(Str text, Str controller);

/* Appends the path of a file in the cgroup of that path. root: as above. tree: of version 1 the
 * controller's directory, as "/freezer", else "". Within a cgroup namespace the first parts of the
 * path are missing, so the kubelet's parent cgroups of both drivers are tried in turn. 0; -ENOENT:
 * there is no such file; -ENOMEM. */
int process_state_cgroup_file(const char *root, const char *tree, Str path, const char *file, Buf *ret);
