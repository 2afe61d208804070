/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether there are slices here, where, and what their limits pages say.
 *
 * That there are none is believed of one answer only: the directory is not there, nobody has named
 * another one, and this library was not loaded from where isolated containers have it. Whatever
 * keeps us from knowing, a lack of descriptors or of memory, another root, a path that is too long,
 * means that there are slices which cannot be used: nothing is allocated, and it is looked for
 * again. */

#include "slice/page.h"

enum { LOOK_PATH = 224 /* SLICE_PATH has room for the names of the files behind it */ };

typedef enum Look {
        LOOK_NONE,   /* nothing is isolated here */
        LOOK_OPEN,   /* the node says so in all the pages: the environment of the container is not asked */
        LOOK_SLICES, /* in the directory that is returned */
        LOOK_CANNOT, /* there are some, or may be */
} Look;

Look look_for_slices(const char **ret_directory);

/* Which slices are in the directory, as bits. false: it cannot be read. */
bool look_which(const char *directory, uint32_t *ret);

/* DIRECTORY/n, and at times a file of it. false: too long. */
bool look_path(const char *directory, unsigned n, const char *file, char path[LOOK_PATH]);

/* The page as it stands there, of which only the magic number was looked at. 0; -EPROTO: it is
 * none; or what open() or read() said. */
int look_limits(const char *directory, unsigned n, SliceLimits *ret);

const char *look_environment(const char *name); /* NULL: it has no such variable */
