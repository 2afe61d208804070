/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The gate as it lies on the node for containers to mount, and the directory that is mounted as
 * SLICE_MOUNT_DIR (slice/container_paths.h):
 *
 *   STATE/inside/libaliquot.so      the library
 *   STATE/inside/N/                 SLICE_MOUNT_DIR of a container with N cards: empty files, over which library and pages are mounted
 *   STATE/gate/                     library and preload for pods that an agent admitted which knew only SLICE_RUN
 *
 * SLICE_MOUNT_DIR is read-only and the runtime makes no mount point in it, so each must be in the
 * directory. Nothing in STATE/inside/N is ever removed or replaced: Linux takes a mount away from
 * every container when the file it is mounted on is removed (detach_mounts()). */

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

typedef struct PreloadFiles {
        char *inside;      /* STATE/inside */
        char *library;     /* in there */
        char *run;         /* STATE/gate */
        char *run_library; /* in there */
        char *run_preload; /* in there: one for all, of pods whose slices had none of their own */
        bool has_run;      /* STATE/gate was there: pods of that layout may be */
        int held[3]; /* the library, run_library and run_preload, open; -1: not (node/isolation/install.h) */
} PreloadFiles;

#define PRELOAD_FILES_NULL ((PreloadFiles){.held = {-1, -1, -1}})

int preload_files_init(PreloadFiles *g, const char *state_dir); /* names the paths; 0 or -ENOMEM */
void preload_files_done(PreloadFiles *g);

/* Installs `given`, or where that is NULL the libaliquot.so beside this program, by rename: running
 * containers keep the library they have. 0 or negative errno with a fault. */
int preload_files_install(PreloadFiles *g, const char *given, Fault *fault);

/* Are the library, and in its layout those of older pods, regular files that can be read? */
bool preload_files_are_complete(const PreloadFiles *g);

enum { PRELOAD_FOLDER = 4096 };
/* The path of SLICE_MOUNT_DIR for a container with n cards, and makes what is missing of it. The
 * second returns 0, or negative errno with a fault: -EEXIST something else stands at one of its
 * paths. */
void preload_files_folder(const PreloadFiles *g, size_t n, char ret[static PRELOAD_FOLDER]);
int preload_files_make_folder(const PreloadFiles *g, size_t n, Fault *fault);
