/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The start time of a process, and whether the process is paused and so cannot report anything.
 * State T or t in /proc/PID/stat means stopped by a signal or a debugger. A frozen cgroup shows as
 * "frozen 1" in cgroup.events (version 2) or "FROZEN" in freezer.state (version 1), also when only
 * an ancestor was frozen. The process state does not show it: S in version 2, D in version 1. */

#include "base/buf.h"

/* Whether the process is stopped or frozen. False when it has ended. proc, root: where the host's
 * proc and its cgroup tree are mounted. root may be NULL: then cgroups are not read. */
bool process_state_is_paused(const char *proc, const char *root, uint32_t pid);

/* The start time in the kernel's ticks since boot. PID and start time together name one process
 * until the next boot. Returns false when the process has ended. */
bool process_state_start_time(const char *proc, uint32_t pid, uint64_t *ret);

/* Whether the first thread has ended (state Z or X) and was not waited for. Other threads of the
 * process may live. */
bool process_state_first_thread_has_ended(const char *proc, uint32_t pid);

/* The pid of the process's parent. Returns false when the process has ended. */
bool process_state_parent(const char *proc, uint32_t pid, uint32_t *ret);

/* The same from the text of /proc/PID/stat, which may be any bytes. */
bool process_state_parse_stopped(Str text);
bool process_state_parse_ended(Str text);
bool process_state_parse_start_time(Str text, uint64_t *ret);

/* The path of one controller in /proc/PID/cgroup, which may be any bytes. controller: "" for
 * version 2, or "freezer". Leading "/.." parts, which point above this program's cgroup namespace,
 * are removed, so the path may start below the root. Returns an empty string when there is none. */
Str process_state_cgroup_path(Str text, Str controller);

/* Appends the path of a file in the cgroup of that path. root: as above. tree: of version 1 the
 * controller's directory, as "/freezer", else "". Within a cgroup namespace the first parts of the
 * path are missing, so the kubelet's parent cgroups of both drivers are tried in turn. 0; -ENOENT:
 * there is no such file; -ENOMEM. */
int process_state_cgroup_file(const char *root, const char *tree, Str path, const char *file, Buf *ret);
