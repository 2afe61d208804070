/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What our programs need beside themselves, the gate and the simulator, lies where a build leaves
 * it (beside the executable) or where an installation has it (../lib/aliquot and its kin of other
 * systems). The environment has no say. */

#include <stddef.h>

#include "base/fault.h"

enum { LOCATE_PATH = 4096 };

/* Directory of the running executable. 0, or negative errno with a fault. */
int locate_own_directory(char *ret, size_t size, Fault *fault);

/* The path of a file of ours that can be read, as "libaliquot.so" or "sim/libcuda.so.1". 0, or
 * negative errno with a fault that says where it was looked for: -ENOENT when it is nowhere,
 * -EACCES when it is there and may not be read. */
int locate_file(const char *name, char *ret, size_t size, Fault *fault);
