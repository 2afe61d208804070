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

/* proc/PID/cgroup of a process in a container of a pod. */
static inline void scratch_process(const char *proc, unsigned pid, const char *uid, const char *container) {
        char path[256];
        FILE *file;

        (void) snprintf(path, sizeof path, "%s/%u", proc, pid);
        ASSERT_OK(mkdir(path, 0755));
        (void) snprintf(path, sizeof path, "%s/%u/cgroup", proc, pid);
        file = fopen(path, "we");
        ASSERT_TRUE(file && fprintf(file, "0::/kubepods/burstable/pod%s/%s\n", uid, container) > 0);
        ASSERT_OK(fclose(file));
}
