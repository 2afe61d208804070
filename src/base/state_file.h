/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/fault.h"

/* Replaces a file as a whole, by a new file and a rename. A reader, or a process that starts after
 * this one was killed, finds the old text or the new one, with the permissions of `mode`. Nothing
 * is fsynced. Returns 0, or negative errno with a fault that names the file; the old text then
 * stays. */
int state_file_write(const char *path, const Buf *text, mode_t mode, Fault *fault);
