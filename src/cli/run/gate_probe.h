/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks that the gate limits the command. A program is started first with the command's
 * environment; it calls the driver and looks whether the gate is loaded and has found the slice. */

#include <stdbool.h>

#include "base/fault.h"

/* Checks that the loader neither splits the path at blanks and colons nor expands it in LD_PRELOAD.
 * Returns 0, or -EINVAL with a fault that names the path. */
int gate_probe_check_path(const char *gate, Fault *fault);

/* The environment must already be the command's. gate, slices, devices: as in Command. The slice
 * must be new, so that only the probe uses it. Returns 0, or negative errno with a fault; -EPERM:
 * the command would run without its limit. */
int gate_probe_run(const char *gate, const char *slices, const char *devices, Fault *fault);

/* The probe itself; main() calls it first. Returns whether this process is the probe; *ret is then
 * its exit status. */
bool gate_probe_main(int argc, char **argv, int *ret);
