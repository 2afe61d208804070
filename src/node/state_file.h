/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "base/fault.h"

/* Replaces a file as a whole: written beside it and renamed, so that a reader, or a process that starts after a crash, sees
 * the old text or the new one. 0, or negative errno with a fault that names the file; the old text then stands. */
int state_file_write(const char *path, const Buf *text, Fault *fault);
