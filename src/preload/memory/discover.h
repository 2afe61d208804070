/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds out whether there are slices in this container, where, and what their limits pages contain.
 *
 * There are none only if the directory does not exist, no variable names another one, and this
 * library was not loaded from the path that isolated containers have. After any other failure (no
 * descriptors, no memory, a changed root, a path that is too long) there may be slices, which
 * cannot be used. Then nothing is allocated, and the next call looks again. */

#include "slice/page.h"

enum { DISCOVER_PATH = 224 /* SLICE_PATH has room for the names of the files behind it */ };

typedef enum Discovery {
        DISCOVERY_NONE, /* nothing is isolated here */
        /* all pages have SLICE_FLAG_OPEN, which the node set; the container's environment is not
         * read */
        DISCOVERY_OPEN,
        DISCOVERY_SLICES, /* in the directory that is returned */
        DISCOVERY_FAILED, /* there are some, or may be */
} Discovery;

Discovery discover_slices(const char **ret_directory);

/* Finds the numbers of the slices in the directory, as bits. Returns false if it cannot be read. */
bool discover_numbers(const char *directory, uint32_t *ret);

/* Writes DIRECTORY/n with the name of a file in it, which may be "". Returns false if it is too
 * long. */
bool discover_path(const char *directory, unsigned n, const char *file, char path[DISCOVER_PATH]);

/* Reads a limits page, of which only the magic number is checked. Returns 0; -EPROTO: it is not
 * such a page; -ENAMETOOLONG; or an error of open() or read(). */
int discover_limits(const char *directory, unsigned n, SliceLimits *ret);

const char *discover_environment(const char *name); /* NULL: no such variable */
