/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The CDI specification file, by which a container runtime gives a container its card: device nodes
 * and the driver's libraries (cncf-tags/container-device-interface). It needs no runtime hook and
 * no nvidia-container-toolkit. The first version, 0.3.0, has all that is used: device nodes, mounts
 * and environment.
 *
 * Libraries are mounted under their SONAME in folders that the loaders of Debian's and Red Hat's
 * families search without a cache, so ldconfig need not run. There is no device "all": a container
 * gets only the cards that it was granted. */

#include "base/arena.h"
#include "base/buf.h"
#include "gpu/cards/card_list.h"
#include "gpu/cards/driver.h"

#define CDI_KIND "aliquot.dev/gpu"

/* The kind for slices of `aliquot run`: one device, and so one file, per slice. */
#define CDI_SLICE_KIND "aliquot.dev/slice"

/* Environment variable of a container with a simulated card: the card's UUID. */
#define CDI_SIMULATED_VARIABLE "ALIQUOT_SIMULATED_CARD"

/* Writes the specification: one device per card, named by UUID. driver: NULL for none. simulated:
 * an environment variable instead of device nodes. Without cards `out` stays unchanged and the file
 * should be removed, because runtimes refuse a specification without devices. A card that has lost
 * its minor number has no device. */
void cdi_write(const CardList *cards, const DriverFiles *driver, bool simulated, Buf *out);

typedef struct CdiMount {
        const char *from, *to; /* paths on the host and in the container */
        bool writable;
} CdiMount;

typedef struct CdiSlice {
        const char *name;             /* name of the CDI device */
        const char *const *variables; /* "NAME=VALUE" */
        size_t n_variables;
        const uint32_t *minors; /* minor numbers of its cards' device nodes */
        size_t n_minors;        /* 0: the driver is simulated, and its files are mounts */
        const DriverFiles *driver;
        const CdiMount *mounts; /* each directory before what is mounted in it */
        size_t n_mounts;
} CdiSlice;

/* Writes a specification with one device, which has all that a container in this slice needs. */
void cdi_write_slice(const CdiSlice *slice, Buf *out);

/* What was found in a specification of cdi_write_slice(): views of the text or the arena, empty
 * where it is absent. */
typedef struct CdiSliceFound {
        Str pages; /* the path on the host of what the container has at `pages_at` */
        Str cards; /* UUIDs with commas between them */
} CdiSliceFound;

/* Reads a specification of cdi_write_slice(). pages_at: a path in the container. Returns 0,
 * -ENOMEM, or JSON_E_MALFORMED for a text that is no JSON or has other types. */
int cdi_read_slice(Str text, Str pages_at, Arena *arena, CdiSliceFound *ret);
