/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/slice_tmpfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slice/page.h"

static size_t whole_pages(size_t bytes) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);

        return (bytes + page - 1) / page * page;
}

/* Bytes of the slice's files: owner, preload, and room for one more. Per card: two files, and a
 * FIFO, which has no bytes. Twice, because a new file is written beside the old one. */
static size_t bytes_of(size_t n) {
        return 2 * (3 * whole_pages(1) +
                    n * (whole_pages(sizeof(SliceLimits)) + whole_pages(sizeof(SliceCounters))));
}

/* The root, owner, preload, and one more. Per card: a directory and three files. Twice, as in
 * bytes_of(). */
static size_t inodes_of(size_t n) {
        return 2 * (4 + n * 4);
}

int slice_tmpfs_check_host(const char *path, const char *proc, Fault *fault) {
        struct stat ours, theirs;
        char there[4096];
        int error, n = snprintf(there, sizeof there, "%s/1/root%s", proc, path);

        if (n < 0 || (size_t) n >= sizeof there)
                return fault_set(fault, SLICE_TMPFS_E_UNKNOWN,
                                 "cannot look at %s as the host (pid 1) sees it: %s", path,
                                 strerror(ENAMETOOLONG));
        error = stat(there, &theirs) < 0 ? errno : 0;
        /* a missing path means SLICE_TMPFS_E_UNSEEN */
        if (error != 0 && error != ENOENT && error != ENOTDIR)
                return fault_set(fault, SLICE_TMPFS_E_UNKNOWN,
                                 "cannot look at %s as the host (pid 1) sees it: %s/1/root: %s", path, proc,
                                 strerror(error));
        if (error == 0 && stat(path, &ours) == 0 && ours.st_dev == theirs.st_dev &&
            ours.st_ino == theirs.st_ino)
                return 0;
        return fault_set(fault, SLICE_TMPFS_E_UNSEEN,
                         "the host (pid 1) would not see what is mounted at %s from here", path);
}

int slice_tmpfs_mount(const char *path, size_t n, const char *proc, Fault *fault) {
        char options[96];

        (void) snprintf(options, sizeof options, "size=%zu,nr_inodes=%zu,mode=755", bytes_of(n),
                        inodes_of(n));
        if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0)
                return fault_set(fault, -errno, "a tmpfs of its own cannot be mounted at %s: %s", path,
                                 strerror(errno));
        if (slice_tmpfs_check_host(path, proc, fault) == 0)
                return 0;
        (void) slice_tmpfs_unmount(path);
        return -ENXIO;
}

int slice_tmpfs_unmount(const char *path) {
        return umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}
