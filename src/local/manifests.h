/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads manifests: files of YAML or JSON documents; Lists are split into their objects. Everything
 * is read before anything is applied, so an error in the last file leaves nothing half done. */

#include "base/fault.h"
#include "local/tree.h"

typedef struct Manifest {
        json_t *object; /* with apiVersion, kind and metadata.name (or generateName) */
        const char *file;
        unsigned document, line; /* from 1; line: first line of the document */
} Manifest;

typedef struct Manifests {
        Manifest *items;
        size_t n, capacity;
        char **paths; /* paths of files that were found in directories; owned */
        size_t n_paths;
} Manifests;

#define MANIFESTS_NULL ((Manifests){0})

enum { MANIFEST_E_MALFORMED = 1 };

/* Larger files, and Lists with more objects, are refused. */
enum { MANIFEST_MAX_BYTES = 256 * 1024 * 1024, MANIFEST_MAX_OBJECTS = 500000 };

/* Appends the objects of a file ("-": standard input) in their order. Of a directory it takes each
 * .yaml, .yml and .json file, by name; directories in it are not entered. `file` must outlive the
 * manifests. Returns 0, -ENOMEM, or MANIFEST_E_MALFORMED with a fault that names file, document,
 * line and rule, also for a file that cannot be read. */
int manifests_load(Manifests *m, const char *file, Fault *fault);
void manifests_done(Manifests *m);

/* Puts "FILE: document 2 (line 14)" before the fault's text; returns r. */
int manifest_fault(const Manifest *m, int r, Fault *fault);
