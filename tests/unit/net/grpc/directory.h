/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A directory for the sockets of a test; it must be empty at the end. */

#include <limits.h>
#include <unistd.h>

#include "test.h"

typedef struct Directory {
        char path[32];
} Directory;

static inline void directory_begin(Directory *d) {
        (void) snprintf(d->path, sizeof d->path, "/tmp/aliquot-rpc-XXXXXX");
        ASSERT_TRUE(mkdtemp(d->path) != NULL);
}

static inline void directory_end(const Directory *d) {
        ASSERT_OK(rmdir(d->path)); /* nothing was left behind */
}

static inline const char *directory_path(const Directory *d, char path[static PATH_MAX], const char *name) {
        ASSERT_TRUE(snprintf(path, PATH_MAX, "%s/%s", d->path, name) < PATH_MAX);
        return path;
}
