/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether another version of the agent left what is kept on a node: its state directory and the
 * slices. The records of this version are in STATE/records. Agents before the first release had
 * them in STATE/pods. The folder's name tells the version, because it is there even where the disk
 * is full or files are damaged. */

#include "base/fault.h"

/* Looks at the state before anything of it is read. One of another version is removed, with all
 * slices, unless it is held: a recorded pod has processes, or a slice's owner or one of its
 * processes lives.
 *
 * cgroups: as in pod_processes(). 0, or negative errno with a fault; -EBUSY: it is held. */
int state_version_settle(const char *state_dir, const char *slices, const char *cgroups, Fault *fault);
