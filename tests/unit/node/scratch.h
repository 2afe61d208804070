/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A directory of a test's own. */

#include <ftw.h>
#include <sys/stat.h>

#include "test.h"

static inline int scratch_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

/* path: ends in XXXXXX, which is replaced. */
static inline void scratch_make(char *path) {
        ASSERT_TRUE(mkdtemp(path) != NULL);
}

static inline void scratch_remove(const char *path) {
        ASSERT_OK(nftw(path, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS));
}
