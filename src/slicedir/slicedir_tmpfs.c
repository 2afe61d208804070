/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/slicedir_tmpfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/file.h"
#include "slicedir/slice_tmpfs.h"
#include "slicedir/slicedir.h"

#define TRIAL ".trial"

enum { MOUNTS_MAX = 16 << 20, INODES_PER_MIB = 256, FDINFO_MAX = 4096 };

static bool is_mount(const Slicedir *d) {
        struct stat above, here;
        struct statx st;

        if (statx(d->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) == 0 &&
            (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
                return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
        /* Linux before 5.8 has no such attribute; this misses a bind mount of the same file
         * system. */
        return fstat(d->fd, &here) == 0 && fstatat(d->fd, "..", &above, 0) == 0 &&
               here.st_dev != above.st_dev;
}

/* ---- propagation ---- */

static bool mount_id(int fd, Buf *ret) {
        static const char mark[] = "mnt_id:\t";
        _cleanup_buf_ Buf path = BUF_NULL, text = BUF_NULL;
        const char *at;

        buf_appendf(&path, "/proc/self/fdinfo/%d", fd);
        if (buf_result(&path) < 0 || file_read(path.data, FDINFO_MAX, &text) < 0 || text.len == 0)
                return false;
        at = strstr(text.data, mark);
        if (!at)
                return false;
        at += sizeof mark - 1;
        buf_append_str(ret, (Str){at, strspn(at, "0123456789")});
        return buf_result(ret) == 0 && ret->len > 0;
}

/* A mount below a shared mount appears in all of its peers, the host's among them. */
static bool is_shared(int fd) {
        _cleanup_buf_ Buf id = BUF_NULL, text = BUF_NULL;
        Str mounts;

        if (!mount_id(fd, &id) || file_read("/proc/self/mountinfo", MOUNTS_MAX, &text) < 0)
                return false;
        mounts = buf_str(&text);
        while (mounts.len > 0) {
                Str line = str_split(&mounts, '\n');

                if (!str_eq(str_split(&line, ' '), buf_str(&id)))
                        continue;
                while (line.len > 0) { /* the optional fields end at a lone "-" */
                        Str field = str_split(&line, ' ');

                        if (str_eq(field, STR("-")))
                                return false;
                        if (field.len > 7 && memcmp(field.data, "shared:", 7) == 0)
                                return true;
                }
        }
        return false;
}

/* ---- mounting ---- */

static int mount_tmpfs(const char *path, unsigned mib, const char *proc, Fault *fault) {
        char options[96];

        (void) snprintf(options, sizeof options, "size=%um,nr_inodes=%llu,mode=755", mib,
                        (unsigned long long) mib * INODES_PER_MIB);
        if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0)
                return fault_set(fault, SLICEDIR_TMPFS_E_MISSING, "a tmpfs of its own cannot be mounted: %s",
                                 strerror(errno));
        if (slice_tmpfs_check_host(path, proc, fault) == 0)
                return 0;
        (void) umount2(path, MNT_DETACH);
        return SLICEDIR_TMPFS_E_MISSING;
}

typedef struct SliceCount {
        unsigned plain, own_tmpfs;
} SliceCount;

static int count_slice(void *userdata, const SlicedirEntry *slice) {
        SliceCount *n = userdata;

        ++*(slice->own_tmpfs ? &n->own_tmpfs : &n->plain);
        return 0;
}

/* Counts the slices, because a tmpfs is never mounted over some. The lock is held, so visiting
 * removes those without an owner. */
static int count_slices(Slicedir *d, SliceCount *ret, Fault *fault) {
        int r = slicedir_lock(d, fault);

        *ret = (SliceCount){0, 0};
        if (r == 0) {
                r = slicedir_each(d, count_slice, ret);
                if (r < 0)
                        (void) fault_set(fault, r, "it cannot be read: %s", strerror(-r));
        }
        if (r < 0)
                return SLICEDIR_TMPFS_E_MISSING;
        return ret->plain > 0 ? fault_set(fault, SLICEDIR_TMPFS_E_MISSING, "%u slice%s on it already",
                                          ret->plain, ret->plain == 1 ? " is" : "s are")
                              : 0;
}

static int check_shared(const Slicedir *d, Fault *fault) {
        return is_shared(d->fd) ? 0
                                : fault_set(fault, SLICEDIR_TMPFS_E_MISSING,
                                            "it lies on a mount that is not shared with the host "
                                            "(mountPropagation: Bidirectional)");
}

/* Mounts the directory's own tmpfs. It needs none if all its slices have a tmpfs each. */
static int mount_slicedir(Slicedir *d, unsigned mib, const char *proc, Fault *fault) {
        Fault why = FAULT_NULL;
        SliceCount n;
        int r;

        if (is_mount(d))
                return 0;
        r = count_slices(d, &n, &why);
        if (r == 0 && n.own_tmpfs == 0) {
                r = check_shared(d, &why);
                if (r == 0)
                        r = mount_tmpfs(d->path, mib, proc, &why);
        }
        slicedir_unlock(d); /* held until no process can make a slice beneath the mount */
        return r == 0 ? 0
                      : fault_set(fault, r,
                                  "%s has no file system of its own, so a container can fill the one that it "
                                  "lies on through its counters: %s",
                                  d->path, why.text);
}

/* ---- the slices ---- */

/* Mounts a tmpfs as a trial, under a name that no slice has. */
static int try_mount(const char *path, const char *proc, Fault *fault) {
        char there[SLICEDIR_PATH_SIZE + 16];
        int r;

        (void) snprintf(there, sizeof there, "%s/" TRIAL, path);
        (void) slice_tmpfs_unmount(there); /* one may be left by an agent that was killed here */
        if (mkdir(there, 0755) < 0 && errno != EEXIST)
                return fault_set(fault, -errno, "cannot make %s: %s", there, strerror(errno));
        r = slice_tmpfs_mount(there, 1, proc, fault);
        if (r == 0)
                (void) slice_tmpfs_unmount(there);
        (void) rmdir(there);
        return r;
}

static int try_slice_tmpfs(Slicedir *d, const char *proc, Fault *fault) {
        Fault why = FAULT_NULL;
        /* reopens the directory, which may have been mounted over */
        int r = slicedir_refresh(d, fault);

        if (r < 0)
                return r;
        r = check_shared(d, &why);
        if (r == 0)
                r = try_mount(d->path, proc, &why);
        return r == 0 ? 0
                      : fault_set(
                                fault, SLICEDIR_TMPFS_E_MISSING,
                                "slices in %s have no file systems of their own, so a container can fill the "
                                "one that they share, and no other with a slice starts before that is cut "
                                "back: %s",
                                d->path, why.text);
}

int slicedir_tmpfs_mount(const char *path, unsigned mib, const char *proc, bool *ret_own_tmpfs,
                         Fault *fault) {
        Fault shared = FAULT_NULL;
        Slicedir d;
        int r, s;

        *ret_own_tmpfs = false;
        r = slicedir_open(&d, path, true, fault);
        if (r < 0)
                return r;
        r = mount_slicedir(&d, mib, proc, fault);
        s = try_slice_tmpfs(&d, proc, &shared);
        slicedir_done(&d);
        *ret_own_tmpfs = s == 0;
        if (r != 0 || s == 0)
                return r;
        return fault_set(fault, s, "%s", shared.text);
}
