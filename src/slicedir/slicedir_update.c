/* SPDX-License-Identifier: Apache-2.0 */

/* Makes and changes slices; declared in slicedir.h. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/selinux.h"
#include "slice/container_paths.h"
#include "slicedir/slice_tmpfs.h"
#include "slicedir/slicedir-internal.h"

/* ---- creating ---- */

static int create_owner(int dir, const char *owner, int *ret, Fault *fault) {
        _cleanup_close_ int fd = openat(dir, SLICEDIR_OWNER, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0 || dprintf(fd, "%s\n", owner) < 0)
                return fault_set(fault, -errno, "cannot write the slice's owner: %s", strerror(errno));
        *ret = TAKE_FD(fd);
        return 0;
}

/* Notifies watchers of new pages by changing the times of the directory. A watcher does not see
 * what lies deeper, or is mounted in another namespace; it reads the directory now and then for
 * that. */
static void notify_watchers(const Slicedir *d) {
        (void) futimens(d->fd, NULL);
}

/* Makes one directory per card with its slice page; existing directories are used again. */
static int write_cards(Slicedir *d, const char *id, int dir, const SliceSpec *specs, size_t n, Fault *fault) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_(slice_files_close) SliceFds held = SLICE_FDS_NULL;
                _cleanup_close_ int fd = -1;
                char name[24];
                int r;

                (void) snprintf(name, sizeof name, "%zu", i);
                if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
                        return fault_set(fault, -errno, "cannot make a slice's directory: %s",
                                         strerror(errno));
                fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (fd < 0 || fchmod(fd, 0755) < 0)
                        return fault_set(fault, -errno, "cannot open a slice's directory: %s",
                                         strerror(errno));
                r = slice_files_make_open(fd, &specs[i], &held, fault);
                if (r == 0 && held_fds_put(&d->held, id, (uint32_t) i, &held) < 0)
                        r = fault_set(fault, -ENOMEM, "out of memory");
                if (r < 0)
                        return r;
        }
        notify_watchers(d);
        return 0;
}

/* Adds to an -ENOSPC fault which directory is full. */
static int explain_full(const Slicedir *d, int r, Fault *fault) {
        return r == -ENOSPC ? fault_wrap(fault, r, "the slice directory %s is full", d->path) : r;
}

static int open_slice(const Slicedir *d, const char *id, int *ret, Fault *fault) {
        int dir = openat(d->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        if (dir < 0)
                return fault_set(fault, -errno, "cannot open slice %s in %s: %s", id, d->path,
                                 strerror(errno));
        *ret = dir;
        return 0;
}

/* An `aliquot run` that was killed before it wrote the owner has left a tmpfs. An agent makes
 * slices without the lock, but never one with the name of a slice of `aliquot run`. */
static bool is_unfinished(const Slicedir *d, const char *id) {
        _cleanup_close_ int dir = openat(d->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        return dir >= 0 && slicedir_has_own_tmpfs(d, dir) &&
               faccessat(dir, SLICEDIR_OWNER, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

static int make_directory(Slicedir *d, const char *id, int *ret, Fault *fault) {
        _cleanup_close_ int dir = -1;
        int r = mkdirat(d->fd, id, SLICEDIR_MODE) < 0 ? -errno : 0;

        if (r == -EEXIST && d->proc && is_unfinished(d, id)) {
                slicedir_remove(d, id);
                r = mkdirat(d->fd, id, SLICEDIR_MODE) < 0 ? -errno : 0;
        }
        if (r < 0)
                return fault_set(fault, r, "cannot make slice %s: %s", id, strerror(-r));
        r = open_slice(d, id, &dir, fault);
        /* readable for a container's users, whatever the umask is */
        if (r == 0 && fchmod(dir, SLICEDIR_MODE) < 0)
                r = fault_set(fault, -errno, "cannot open slice %s: %s", id, strerror(errno));
        if (r == 0)
                *ret = TAKE_FD(dir);
        else
                slicedir_remove(d, id);
        return r;
}

static int label_directory(const Slicedir *d, const char *id, int dir, Fault *fault) {
        char path[SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE];

        slicedir_slice_path(d, id, path);
        return d->labels ? selinux_label(dir, path, fault) : 0;
}

/* The directory gets the mode of a mount point only after the mount. So an `aliquot run` that is
 * killed before leaves an empty slice, which is removed as any other. */
static int try_own_tmpfs(const Slicedir *d, const char *id, size_t n, int *dir, Fault *fault) {
        char path[SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE];
        Fault ignored = FAULT_NULL;
        int below = *dir, r;

        slicedir_slice_path(d, id, path);
        if (!d->proc || slice_tmpfs_mount(path, n, d->proc, &ignored) < 0)
                return 0;
        r = fchmod(below, SLICEDIR_MOUNTPOINT_MODE) < 0
                    ? fault_set(fault, -errno, "cannot change the mode of %s: %s", path, strerror(errno))
                    : open_slice(d, id, dir, fault);
        if (r == 0)
                (void) close(below);
        return r;
}

int slicedir_create(Slicedir *d, const char *id, const char *owner, const SliceSpec *specs, size_t n,
                    int *ret_owner, Fault *fault) {
        _cleanup_close_ int dir = -1, held = -1;
        int r;

        if (n > SLICEDIR_CARDS_MAX || strlen(id) >= SLICEDIR_ID_SIZE)
                return fault_set(fault, -E2BIG, "slice %s: more than %d cards, or a longer name than %d", id,
                                 SLICEDIR_CARDS_MAX, SLICEDIR_ID_SIZE - 1);
        r = make_directory(d, id, &dir, fault);
        if (r < 0)
                return r;
        r = try_own_tmpfs(d, id, n, &dir, fault);
        if (r == 0)
                r = label_directory(d, id, dir, fault);
        if (r == 0)
                r = create_owner(dir, owner, &held, fault);
        if (r == 0)
                r = write_cards(d, id, dir, specs, n, fault);
        if (r < 0) {
                slicedir_remove(d, id);
                return explain_full(d, r, fault);
        }
        *ret_owner = TAKE_FD(held);
        return 0;
}

static int write_owner(int dir, const char *owner, Fault *fault) {
        _cleanup_close_ int fd = openat(dir, SLICEDIR_OWNER ".new",
                                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0 || dprintf(fd, "%s\n", owner) < 0 ||
            renameat(dir, SLICEDIR_OWNER ".new", dir, SLICEDIR_OWNER) < 0)
                return fault_set(fault, -errno, "cannot write the slice's owner: %s", strerror(errno));
        return 0;
}

/* Each slice has its own file, because the dynamic linker opens one at the start of each program.
 * If containers shared it, one of them could lease it and so delay the others' programs
 * (slicedir/file_lease.h). */
static int write_preload(int dir, Fault *fault) {
        _cleanup_close_ int fd = openat(dir, SLICEDIR_PRELOAD ".new",
                                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0 || fchmod(fd, 0644) < 0 /* not reduced by the umask */ ||
            dprintf(fd, "%s\n", SLICE_GATE) < 0 ||
            renameat(dir, SLICEDIR_PRELOAD ".new", dir, SLICEDIR_PRELOAD) < 0)
                return fault_set(fault, -errno, "cannot write the slice's %s: %s", SLICEDIR_PRELOAD,
                                 strerror(errno));
        return 0;
}

/* Frees what a container has written beyond the counters' size, as room for new files. Errors are
 * ignored: without room the next write reports it. */
static void give_back(int dir) {
        char name[16] = "0";

        for (uint32_t i = 0; i < SLICEDIR_CARDS_MAX && faccessat(dir, name, F_OK, 0) == 0; i++) {
                _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

                if (fd >= 0)
                        (void) slice_files_give_back(fd);
                (void) snprintf(name, sizeof name, "%u", i + 1);
        }
}

/* Mounts a tmpfs on a slice's directory that is still empty. A slice with an owner stays where it
 * is, because containers have its files mounted. */
static int mount_own_tmpfs(const Slicedir *d, const char *id, size_t n, int *dir, Fault *fault) {
        char path[SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE];
        int r;

        if (!d->proc || slicedir_has_own_tmpfs(d, *dir) ||
            faccessat(*dir, SLICEDIR_OWNER, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return 0;
        slicedir_slice_path(d, id, path);
        r = slice_tmpfs_mount(path, n, d->proc, fault);
        if (r < 0)
                return r;
        (void) close(TAKE_FD(*dir));
        return open_slice(d, id, dir, fault);
}

static int write_slice(Slicedir *d, const char *id, int dir, const char *owner, const SliceSpec *specs,
                       size_t n, Fault *fault) {
        int r;

        give_back(dir);
        r = write_owner(dir, owner, fault);
        if (r == 0)
                r = write_preload(dir, fault);
        if (r == 0)
                r = write_cards(d, id, dir, specs, n, fault);
        return explain_full(d, r, fault);
}

int slicedir_update(Slicedir *d, const char *id, const char *owner, const SliceSpec *specs, size_t n,
                    Fault *fault) {
        _cleanup_close_ int dir = -1;
        bool made;
        int r;

        if (n > SLICEDIR_CARDS_MAX || strlen(id) >= SLICEDIR_ID_SIZE)
                return fault_set(fault, -E2BIG, "slice %s: more than %d cards, or a longer name than %d", id,
                                 SLICEDIR_CARDS_MAX, SLICEDIR_ID_SIZE - 1);
        made = mkdirat(d->fd, id, d->proc ? SLICEDIR_MOUNTPOINT_MODE : SLICEDIR_MODE) == 0;
        if (!made && errno != EEXIST)
                return explain_full(d,
                                    fault_set(fault, -errno, "cannot make slice %s in %s: %s", id, d->path,
                                              strerror(errno)),
                                    fault);
        r = open_slice(d, id, &dir, fault);
        if (r == 0)
                r = mount_own_tmpfs(d, id, n, &dir, fault);
        if (r == 0)
                r = label_directory(d, id, dir, fault);
        if (r == 0)
                r = write_slice(d, id, dir, owner, specs, n, fault);
        if (r < 0 && made)
                slicedir_remove(d, id); /* without an owner the slice would never be removed */
        return r;
}

int slicedir_write_preload(Slicedir *d, const char *id, Fault *fault) {
        _cleanup_close_ int dir = -1;
        int r = open_slice(d, id, &dir, fault);

        if (r == 0 && faccessat(dir, SLICEDIR_PRELOAD, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                r = write_preload(dir, fault);
        return r;
}

/* Is this slice an agent's? Also if it has no owner, but a tmpfs or the mode of a mount point. Then
 * the agent was killed before it wrote the owner. Or the directory could not be removed, because it
 * was mounted a second time in this namespace, as below a view of the host's root. */
static bool is_agents(Slicedir *d, const char *id) {
        _cleanup_close_ int dir = openat(d->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), fd = -1;
        char text[sizeof SLICEDIR_AGENT] = "";

        if (dir < 0)
                return false;
        fd = openat(dir, SLICEDIR_OWNER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return errno == ENOENT && (slicedir_has_own_tmpfs(d, dir) || slicedir_is_mountpoint(dir));
        return read(fd, text, strlen(SLICEDIR_AGENT)) == (ssize_t) strlen(SLICEDIR_AGENT) &&
               strcmp(text, SLICEDIR_AGENT) == 0;
}

int slicedir_resize(Slicedir *d, const char *id, uint32_t number, uint64_t bytes, uint32_t percent,
                    Fault *fault) {
        char path[SLICEDIR_ID_SIZE + 16];
        _cleanup_close_ int fd = -1;
        bool written;
        int r;

        (void) snprintf(path, sizeof path, "%s/%u", id, number);
        fd = openat(d->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return fault_set(fault, -errno, "cannot open slice %s: %s", path, strerror(errno));
        r = slice_files_set_size(fd, bytes, percent, &written, fault);
        if (r == 0 && written)
                notify_watchers(d);
        return r;
}

typedef struct Sweep {
        bool (*keep)(void *userdata, const char *id);
        void *userdata;
} Sweep;

/* Keeps open the pages that an earlier agent made, or that were leased at the last sweep. Cards are
 * numbered without gaps. */
static int hold_pages(Slicedir *d, const char *id) {
        for (uint32_t i = 0; i < SLICEDIR_CARDS_MAX; i++) {
                _cleanup_(slice_files_close) SliceFds held = SLICE_FDS_NULL;
                _cleanup_close_ int fd = -1;
                char path[SLICEDIR_ID_SIZE + 16];

                if (held_fds_has(&d->held, id, i))
                        continue;
                (void) snprintf(path, sizeof path, "%s/%u", id, i);
                fd = openat(d->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (fd < 0)
                        return 0;
                slice_files_open(fd, &held);
                if (held_fds_put(&d->held, id, i, &held) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int sweep_step(Slicedir *d, const char *id, void *userdata) {
        const Sweep *s = userdata;

        if (!is_agents(d, id))
                return 0;
        if (s->keep(s->userdata, id))
                return hold_pages(d, id);
        slicedir_remove(d, id);
        return 0;
}

int slicedir_sweep(Slicedir *d, bool (*keep)(void *userdata, const char *id), void *userdata) {
        int r = slicedir_walk(d, sweep_step, &(Sweep){keep, userdata});

        /* Also drops held pages of slices whose directories other programs have removed. */
        held_fds_sweep(&d->held, keep, userdata);
        return r;
}
