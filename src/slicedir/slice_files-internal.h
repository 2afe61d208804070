/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What slice_files.c (reading and trimming) and slice_files_write.c (making and changing) share.
 * All return 0, SLICE_FILES_E_DAMAGED or negative errno. */

#include "slicedir/slice_files.h"

/* Opens a regular file; the caller closes *ret. A symbolic link or another type of file counts as
 * damaged. */
int slice_files_open_file(int directory, const char *name, int flags, int *ret);

/* Reads a whole file and checks its magic number, version and size. */
int slice_files_load_limits(int fd, SliceLimits *ret);
int slice_files_load_counters(int fd, SliceCounters *ret);
