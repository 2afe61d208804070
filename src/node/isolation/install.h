/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Installs the files that the agent brings for containers, where the host's runtime can mount
 * them. */

#include "base/buf.h"
#include "base/fault.h"

/* Reads the file `given`, or where that is NULL the one called `name` that base/locate.h finds. 0
 * or negative errno with a fault that begins with `what`. */
int install_read(const char *given, const char *name, const char *what, Buf *into, Fault *fault);

/* Writes the text to `path`, for all users to read and execute. It is renamed over the old file,
 * which running containers keep. A container that starts again gets the new one by the same path. A
 * file with the same text is left as it is.
 *
 * *ret_held is the file, open for reading. The caller keeps it open as long as containers may mount
 * it: then no container can lease it and so delay the others (slicedir/file_lease.h). A file that
 * is leased already is replaced, and a child process waits for its lease as long as we live. 0 or
 * negative errno with a fault. The caller has one thread. */
int install_write(const char *path, const Buf *text, int *ret_held, Fault *fault);

/* Checks that the held file can be mapped as code. The dynamic linker skips a preload that it
 * cannot map, and the program would run without it. 0 or negative errno with a fault. */
int install_check(const char *path, int held, Fault *fault);

int install_folder(const char *path, Fault *fault); /* mode 0755; may exist */
