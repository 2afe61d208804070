/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the agent brings along for containers: files beside its program, put where the host's
 * runtime can mount them from. */

#include "base/buf.h"
#include "base/fault.h"

/* Reads `name`: `given` itself, or the one that base/locate.h finds. 0 or negative errno with a
 * fault that begins with `what`. */
int install_read(const char *given, const char *name, const char *what, Buf *into, Fault *fault);

/* Puts it at `path`, for all to read and execute. Renamed over the old one, whose containers keep
 * it; one that starts again gets the new one by the same path. The same text is not written again.
 * *ret_held is open for reading, and is to be as long as containers may have it: so none of them
 * can lease it and keep the others waiting for it (slicedir/file_lease.h). One that is leased already is
 * waited for beside us, as long as we live, and a new one stands in its place. 0 or negative errno
 * with a fault. The caller has one thread. */
int install_write(const char *path, const Buf *text, int *ret_held, Fault *fault);

/* Can it, held open, be loaded from there? The dynamic linker passes over what it cannot, and the
 * program runs without. 0 or negative errno with a fault. */
int install_check(const char *path, int held, Fault *fault);

int install_folder(const char *path, Fault *fault); /* 0755; one that is there is kept */
