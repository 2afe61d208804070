/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* device-plugins/kubelet_internal_checkpoint: who holds which IDs by pod UID, init containers too,
 * which PodResources never lists. The file is the kubelet's own affair; its two forms so far
 * (DeviceIDs as a list before 1.20, by NUMA node since) are read, and whoever reads it must be able
 * to live without. Its checksum is over a dump of a Go structure and is not checked. Entries of
 * pods that are gone stay in it until the kubelet's next allocation. */

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

/* Entries of resources that begin with prefix, into the arena, as views of json. At most 65,536
 * entries and 1,000,000 IDs. 0, CHECKPOINT_E_MALFORMED, -ENOMEM. */
enum { CHECKPOINT_E_MALFORMED = 1 };
int checkpoint_decode(Str json, Str prefix, Arena *arena, Checkpoint *ret, Fault *fault);

/* The file, at most 64 MiB. Also CHECKPOINT_E_NONE when there is no such file, or negative
 * errno. */
enum { CHECKPOINT_E_NONE = 2 };
int checkpoint_load(const char *path, Str prefix, Arena *arena, Checkpoint *ret, Fault *fault);

/* The file as it was last read, for whoever looks at it again and again: it is parsed only when it
 * is another one (the kubelet replaces it by a rename). A zeroed one with its path and prefix is
 * ready; done frees what was read and leaves it ready. */
typedef struct CheckpointFile {
        const char *path; /* outlives it, as does prefix */
        Str prefix;
        Arena arena;
        Checkpoint seen;
        struct stat of;
        bool is_seen;
} CheckpointFile;

/* *ret lives until the next look. Errors of checkpoint_load. */
int checkpoint_file_look(CheckpointFile *f, const Checkpoint **ret, Fault *fault);
void checkpoint_file_done(CheckpointFile *f);
