/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/fault.h"

/* Replaces a file as a whole: written beside it and renamed, so that a reader, or a process that
 * starts after a crash, sees the old text or the new one, in either case for whom `mode` says. 0,
 * or negative errno with a fault that names the file; the old text then stands. */
int state_file_write(const char *path, const Buf *text, mode_t mode, Fault *fault);
