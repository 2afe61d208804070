/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the agent brings along for containers: files beside its program, put where the host's runtime can mount them from. */

#include "base/buf.h"
#include "base/fault.h"

/* Reads `name`: `given` itself, or the one that beside/find.h finds. 0 or negative errno with a fault that
 * begins with `what`. */
int install_read(const char *given, const char *name, const char *what, Buf *into, Fault *fault);

/* Puts it at `path`, for all to read and execute. Renamed over the old one, whose containers keep it; one that starts again gets
 * the new one by the same path. The same text is not written again. 0 or negative errno with a fault. */
int install_write(const char *path, const Buf *text, Fault *fault);

/* Can it be loaded from there? The dynamic linker passes over what it cannot, and the program runs without. 0 or negative errno with
 * a fault. */
int install_check(const char *path, Fault *fault);

int install_folder(const char *path, Fault *fault); /* 0755; one that is there is kept */
