/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Is a process held up, so that it cannot say anything? By a signal or a debugger: its state is T
 * or t. With its cgroup: version 2 says "frozen 1" in cgroup.events, version 1 "FROZEN" in
 * freezer.state, both of those below a frozen one, too; states do not tell it (S in version 2, D in
 * 1). */

#include "base/str.h"

/* Of a process that is gone: false. proc, root: where the host's proc and its cgroup tree are
 * mounted. */
bool process_is_paused(const char *proc, const char *root, uint32_t pid);

bool process_stat_stopped(Str text); /* of the text of /proc/PID/stat, any bytes */

/* The path in one tree's line of /proc/PID/cgroup, any bytes: "" for version 2, "freezer". What
 * leads to above this program's own cgroup is cut off ("/../../kubepods-burstable.slice/..."), so
 * it may begin below the root. Empty: there is none. */
Str process_cgroup_path(Str text, Str controller);
