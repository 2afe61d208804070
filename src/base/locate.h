/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the files are that our programs need: the preload library and the simulator. They lie
 * beside the executable, as a build leaves them, or in an installation's folder such as
 * ../lib/aliquot. The environment cannot change that. */

#include <stddef.h>

#include "base/fault.h"

enum { LOCATE_PATH = 4096 };

/* Sets *ret to the directory of the running executable. Returns 0, or negative errno with
 * a fault. */
int locate_own_directory(char *ret, size_t size, Fault *fault);

/* Finds one of our files, such as "libaliquot.so" or "sim/libcuda.so.1", and sets *ret to its path.
 * Returns 0, or negative errno with a fault that names the places: -ENOENT when it is in none of
 * them, -EACCES when it cannot be read. */
int locate_file(const char *name, char *ret, size_t size, Fault *fault);
