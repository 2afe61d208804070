/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The version of what the agent keeps on a node: its state directory and the slices. It stands in
 * STATE/version. A state without that file was left by an agent that was never released. */

#include "base/fault.h"

/* Looks at the state before anything of it is read. One of another version is removed, with all
 * slices, unless it is held: a recorded pod has processes, or a slice's owner or one of its
 * processes lives. Writes the version where it is missing, or damaged: damaged files of the state are
 * no other version, and each of them is read as such.
 *
 * cgroups: as in pod_processes(). 0, or negative errno with a fault; -EBUSY: it is held. */
int state_version_settle(const char *state_dir, const char *slices, const char *cgroups, Fault *fault);
