/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The CDI specification of a slice: a file by which podman, docker or containerd puts a container
 * into the slice. The container gets the card's device nodes and the driver's files, and as on
 * a cluster the paths of slice/container_paths.h.
 *
 * SLICE_MOUNT_DIR is DIR.inside, an empty folder that stays. The pages are the slice's directory,
 * so a container that outlives its slice finds no page, and the library refuses it all memory. */

#include "cli/run/command.h"
#include "gpu/cards/cdi.h"
#include "slicedir/slicedir.h"

#define CDI_FILE_DIR "/var/run/cdi" /* that each runtime reads, as the other one, /etc/cdi */

typedef struct CdiFile {
        char path[SLICEDIR_PATH_SIZE]; /* empty: none was written */
} CdiFile;

/* Whether the text can name a device of CDI 0.3.0, and a slice: letters, digits, '_' and '-', first
 * a letter, last a letter or digit, 63 characters at most. */
bool cdi_file_is_name(const char *text);

/* Writes the file in `dir`, which is made if it is missing. An older file of the name is replaced,
 * because a run that was killed leaves its own. c: of a slice that exists in `d`. nvml: the library
 * of a simulated driver; NULL: the driver is real. Returns 0, or negative errno with a fault;
 * -EEXIST: the file describes a slice that lives in another slice directory, and stays. */
int cdi_file_write(const char *dir, const char *name, const Command *c, Slicedir *d, const char *nvml,
                   CdiFile *ret, Fault *fault);

/* Removes the file that was written; does nothing for an empty path. */
void cdi_file_remove(CdiFile *f);
