/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The preload library as it is installed on the node, and the directory that containers get as
 * SLICE_MOUNT_DIR (slice/container_paths.h):
 *
 *   STATE/inside/libaliquot.so      the library
 *   STATE/inside/N/                 SLICE_MOUNT_DIR of a container with N cards: empty mount points
 *
 * SLICE_MOUNT_DIR is read-only, so the runtime cannot make mount points in it: each must exist.
 * Nothing in STATE/inside/N is ever removed or replaced. Linux takes a mount away from every
 * container when the file that it is mounted on is removed (detach_mounts()). */

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

typedef struct PreloadFiles {
        char *inside;  /* STATE/inside */
        char *library; /* in STATE/inside */
        int held;      /* descriptor of the library, kept open (install.h); -1: none */
        bool labels;   /* all of it is labelled for containers: base/selinux.h */
} PreloadFiles;

#define PRELOAD_FILES_NULL ((PreloadFiles){.held = -1})

/* Names the paths. labels: the machine has SELinux. 0 or -ENOMEM. */
int preload_files_init(PreloadFiles *p, const char *state_dir, bool labels);
void preload_files_done(PreloadFiles *p);

/* Installs `given`, or where that is NULL the libaliquot.so beside this program, by rename: running
 * containers keep the library that they have. 0 or negative errno with a fault. */
int preload_files_install(PreloadFiles *p, const char *given, Fault *fault);

/* Whether the library is a regular file that can be read. */
bool preload_files_are_complete(const PreloadFiles *p);

enum { PRELOAD_FOLDER = 4096 };
/* Writes the host path of the directory that a container with n cards gets as SLICE_MOUNT_DIR. */
void preload_files_folder(const PreloadFiles *p, size_t n, char ret[static PRELOAD_FOLDER]);
/* Makes what is missing of that directory. 0, or negative errno with a fault; -EEXIST: one of its
 * paths is taken by another kind of file. */
int preload_files_make_folder(const PreloadFiles *p, size_t n, Fault *fault);
