/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads device-plugins/kubelet_internal_checkpoint: which device IDs each container holds, by pod
 * UID. Unlike PodResources it also lists ordinary init containers. The format is private to the
 * kubelet, so callers must work without the file. Both forms so far are supported: DeviceIDs as a
 * list (before 1.20) and by NUMA node (since). The checksum is over a printed Go structure and is
 * not checked. Entries of deleted pods stay until the kubelet's next allocation.
 *
 * checkpoint.c decodes the text; checkpoint_file.c keeps the last result. */

#include <sys/stat.h>

#include "base/arena.h"
#include "base/fault.h"
#include "base/str.h"

typedef struct CheckpointEntry {
        Str pod_uid, container, resource;
        Str *ids; /* over all NUMA nodes */
        size_t n;
} CheckpointEntry;

typedef struct Checkpoint {
        CheckpointEntry *entries;
        size_t n;
} Checkpoint;

/* Decodes the entries whose resource begins with prefix into the arena, as views of json. Returns
 * 0, -ENOMEM, or CHECKPOINT_E_MALFORMED, also for more than 65,536 entries or 1,000,000 IDs. */
enum { CHECKPOINT_E_MALFORMED = 1 };
int checkpoint_decode(Str json, Str prefix, Arena *arena, Checkpoint *ret, Fault *fault);

/* The same for the file, at most 64 MiB. Also returns CHECKPOINT_E_NONE when there is no such file,
 * or negative errno. */
enum { CHECKPOINT_E_NONE = 2 };
int checkpoint_load(const char *path, Str prefix, Arena *arena, Checkpoint *ret, Fault *fault);

/* The file as it was last read. It is parsed again only when stat() shows another file, because the
 * kubelet replaces it by a rename. Initialize path and prefix and zero the rest; done frees the
 * result and leaves the object ready for use. */
typedef struct CheckpointFile {
        const char *path; /* borrowed, as is prefix */
        Str prefix;
        Arena arena;
        Checkpoint seen;
        struct stat of;
        bool is_seen;
} CheckpointFile;

/* *ret is valid until the next look. Returns the errors of checkpoint_load(). */
int checkpoint_file_look(CheckpointFile *f, const Checkpoint **ret, Fault *fault);
void checkpoint_file_done(CheckpointFile *f);
