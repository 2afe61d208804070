/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the gate will really hold the command: a program with the command's environment is
 * started first, asks the driver something, and looks whether the gate was there and had found the
 * slice. A limit that is only hoped for is none. */

#include <stdbool.h>

#include "base/fault.h"

/* What is loaded into every program of the command must not be cut in two by the loader, nor be
 * expanded by it. 0, or -EINVAL with a fault that names the path. */
int gate_probe_check_path(const char *gate, Fault *fault);

/* The environment is the command's already. gate, slices, devices: as in Command. The slice must be
 * new: who has it is the probe. 0, or negative errno with a fault: -EPERM, the command would run
 * without its limit. */
int gate_probe_run(const char *gate, const char *slices, const char *devices, Fault *fault);

/* The other side: main() calls it first. Whether this process is the probe; *ret is its exit status
 * then. */
bool gate_probe_main(int argc, char **argv, int *ret);
