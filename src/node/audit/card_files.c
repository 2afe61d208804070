/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/card_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

enum {
        NVIDIA_MAJOR = 195,  /* Documentation/admin-guide/devices.txt */
        LOOKS_MAX = 1 << 14, /* descriptors of one process */
        PATH_SIZE = 512,
};

DEFINE_CLEANUP(DIR *, closedir)

CardFiles card_files_find(const char *simulated) {
        struct statx st;

        if (statx(AT_FDCWD, simulated ? simulated : "/dev/nvidia-uvm", AT_STATX_DONT_SYNC, STATX_TYPE, &st) !=
            0)
                return (CardFiles){0};
        if (simulated)
                return (CardFiles){.simulated = makedev(st.stx_dev_major, st.stx_dev_minor)};
        return (CardFiles){.uvm_major = S_ISCHR(st.stx_mode) ? st.stx_rdev_major : 0};
}

/* Whether the descriptor leads to a driver's file. The file system is not asked: a container can
 * have one of its own, which does not answer. */
static bool is_driver_file(int list, const char *name, const CardFiles *files) {
        struct statx st;

        if (statx(list, name, AT_STATX_DONT_SYNC, STATX_TYPE, &st) != 0)
                return false;
        if (files->simulated > 0)
                return makedev(st.stx_dev_major, st.stx_dev_minor) == files->simulated;
        return S_ISCHR(st.stx_mode) && (st.stx_rdev_major == NVIDIA_MAJOR ||
                                        (files->uvm_major > 0 && st.stx_rdev_major == files->uvm_major));
}

/* Looks at the descriptors of one thread. *left: how many may still be looked at. */
static CardFilesOpen look(int tasks, const char *task, const CardFiles *files, unsigned *left) {
        _cleanup_(closedirp) DIR *list = NULL;
        char name[PATH_SIZE];
        const struct dirent *entry;
        int fd;

        (void) snprintf(name, sizeof name, "%s/fd", task);
        fd = openat(tasks, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        list = fd >= 0 ? fdopendir(fd) : NULL;
        if (!list) {
                if (fd >= 0)
                        (void) close(fd);
                return CARD_FILES_UNREADABLE;
        }
        while ((entry = readdir(list))) {
                if (entry->d_name[0] == '.')
                        continue;
                if ((*left)-- == 0)
                        return CARD_FILES_SOME;
                if (is_driver_file(dirfd(list), entry->d_name, files))
                        return CARD_FILES_SOME;
        }
        return CARD_FILES_NONE;
}

/* A thread that ends meanwhile leaves its descriptors to the others, or they are closed. */
CardFilesOpen card_files_of(const char *proc, uint32_t pid, const CardFiles *files) {
        CardFilesOpen found = CARD_FILES_UNREADABLE, r;
        _cleanup_(closedirp) DIR *tasks = NULL;
        const struct dirent *entry;
        unsigned left = LOOKS_MAX;
        char path[PATH_SIZE];

        (void) snprintf(path, sizeof path, "%s/%u/task", proc, pid);
        tasks = opendir(path);
        while (tasks && (entry = readdir(tasks))) {
                if (entry->d_name[0] == '.')
                        continue;
                r = look(dirfd(tasks), entry->d_name, files, &left);
                if (r == CARD_FILES_SOME)
                        return r;
                if (r == CARD_FILES_NONE)
                        found = r;
        }
        return found;
}
