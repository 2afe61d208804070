/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Manifests as people write them: files of YAML or JSON documents, Lists taken apart. Everything is
 * read before anything is applied, so that a typing error in the last file leaves nothing half
 * done. */

#include "base/fault.h"
#include "local/tree.h"

typedef struct Manifest {
        json_t *object; /* with apiVersion, kind and metadata.name (or generateName) */
        const char *file;
        unsigned document, line; /* from 1; line of the document's beginning */
} Manifest;

typedef struct Manifests {
        Manifest *items;
        size_t n, capacity;
} Manifests;

#define MANIFESTS_NULL ((Manifests){0})

enum { MANIFEST_E_MALFORMED = 1 };

/* A file over this is no manifest; a List over that many objects is refused as well. */
enum { MANIFEST_MAX_BYTES = 256 * 1024 * 1024, MANIFEST_MAX_OBJECTS = 500000 };

/* Appends the objects of a file ("-": standard input), in their order. file must outlive the manifests. Returns 0,
 * MANIFEST_E_MALFORMED with a fault that names file, document, line and rule (also for a file that cannot be read), or
 * -ENOMEM. */
int manifests_load(Manifests *m, const char *file, Fault *fault);
void manifests_done(Manifests *m);

/* "FILE: document 2 (line 14)" in front of what was said; returns r. */
int manifest_fault(const Manifest *m, int r, Fault *fault);
