/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What slicedir.c (the directory, visiting and removing slices) and slicedir_update.c (making and
 * changing them) share. */

#include "slicedir/slicedir.h"

#define SLICEDIR_OWNER "owner" /* the file with the owner's line */

/* The mode of a directory that is only a mount point. A process in another mount namespace does not
 * see what is mounted on it. It must not remove the directory, because the kernel would then detach
 * the mount in all namespaces. */
enum { SLICEDIR_MOUNTPOINT_MODE = 0, SLICEDIR_MODE = 0755 };

/* Whether the slice's directory `dir` is on another file system than d, or has the mode of a mount
 * point. */
bool slicedir_has_own_tmpfs(const Slicedir *d, int dir);
bool slicedir_is_mountpoint(int dir);

void slicedir_slice_path(const Slicedir *d, const char *id,
                         char ret[static SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE]);

/* Calls step() for each slice until it returns non-zero, and returns that. Returns negative errno
 * when the directory cannot be read. */
int slicedir_walk(Slicedir *d, int (*step)(Slicedir *d, const char *id, void *userdata), void *userdata);
