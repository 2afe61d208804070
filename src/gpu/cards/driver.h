/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds on the host what a container needs of the driver: libraries, nvidia-smi, device nodes. All
 * libraries of the driver are given except those for a screen, so new ones of a newer driver
 * (libnvidia-nvvm70, libnvidia-gpucomp) are included. Links are followed below the host's root; the
 * resulting paths are the host's. */

#include "base/cleanup.h"
#include "base/str.h"

typedef enum DriverFileKind {
        DRIVER_LIBRARY, /* target: its SONAME, a file name */
        DRIVER_FILE,    /* target: its path in the container */
        /* a device node that not every host has; target: its path in the container */
        DRIVER_DEVICE,
} DriverFileKind;

typedef struct DriverFile {
        DriverFileKind kind;
        char *path; /* on the host, without symbolic links */
        char *target;
} DriverFile;

typedef struct DriverFiles {
        DriverFile *files; /* by kind and target, without duplicates */
        size_t n;
} DriverFiles;

enum { DRIVER_FILES_MAX = 128 }; /* no driver has more files; further ones are left out */

/* Finds the driver's files; driver_files_done() frees them. host_root: mount point of the host's
 * root file system ("/" or "/host"). Returns 0 or -ENOMEM. The list is empty when nothing is
 * found. */
int driver_files_find(const char *host_root, DriverFiles *ret);
void driver_files_done(DriverFiles *f);
