/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What of the driver a container needs, found on the host: libraries, nvidia-smi, device nodes. A
 * library of the driver is given unless it is one of those for a screen, so that what a newer
 * driver brings (libnvidia-nvvm70, libnvidia-gpucomp) is not missed. Links are followed below the
 * host's root; the paths are the host's own. */

#include "base/cleanup.h"
#include "base/str.h"

typedef enum DriverFileKind {
        DRIVER_LIBRARY, /* target: its SONAME, a file name */
        DRIVER_FILE,    /* target: its path in the container */
        DRIVER_DEVICE,  /* a device node that not every host has; target: its path in the container */
} DriverFileKind;

typedef struct DriverFile {
        DriverFileKind kind;
        char *path; /* on the host, no symbolic link */
        char *target;
} DriverFile;

typedef struct DriverFiles {
        DriverFile *files; /* by kind and target, each once */
        size_t n;
} DriverFiles;

enum { DRIVER_FILES_MAX = 128 }; /* a folder with more is not a driver's: the rest is left out */

/* host_root: where the host's root file system is seen ("/" or "/host"). 0 or -ENOMEM; none found
 * is an empty list. */
int driver_files_find(const char *host_root, DriverFiles *ret);
void driver_files_done(DriverFiles *f);
