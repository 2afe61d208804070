/* SPDX-License-Identifier: Apache-2.0 */
#include "local/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "slice/container_paths.h"

enum { NOBODY = 65534 };

int sandbox_clone_flags(void) {
        return CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
}

static int write_once(pid_t child, const char *file, const char *text) {
        _cleanup_close_ int fd = -1;
        char path[64];
        ssize_t n;

        (void) snprintf(path, sizeof path, "/proc/%d/%s", (int) child, file);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = write(fd, text, strlen(text)); /* the kernel takes a map only in one write */
        return n < 0 ? -errno : 0;
}

/* Whether the uid or gid of nobody is mapped here; in a user namespace with one id it is not. */
static bool has_nobody(const char *path) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        unsigned first, outside, n;

        while (f && fscanf(f, "%u %u %u", &first, &outside, &n) == 3)
                if (first <= NOBODY && NOBODY - first < n)
                        return true;
        return false;
}

int sandbox_map_ids(pid_t child) {
        bool nobody = geteuid() == 0 && has_nobody("/proc/self/uid_map") && has_nobody("/proc/self/gid_map");
        char map[64];
        int r = 0;

        /* Without privileges, setgroups must be off for a group map (user_namespaces(7)). */
        if (!nobody)
                r = write_once(child, "setgroups", "deny");
        (void) snprintf(map, sizeof map, "0 %u 1", nobody ? NOBODY : (unsigned) geteuid());
        if (r == 0)
                r = write_once(child, "uid_map", map);
        (void) snprintf(map, sizeof map, "0 %u 1", nobody ? NOBODY : (unsigned) getegid());
        return r < 0 ? r : write_once(child, "gid_map", map);
}

/* --- files ------------------------------------------------------------------------------------ */

static int make_private_tmpfs(const char *where, const char *options) {
        return mount("tmpfs", where, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0 ? -errno : 0;
}

/* Seals the whole tree with all its mounts; a plain remount changes only the top. */
static int seal_files(void) {
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};

        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return -errno;
        return mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr) < 0 ? -errno : 0;
}

/* Makes a /dev of five harmless devices, assembled aside and moved over the machine's. In a user
 * namespace device nodes cannot be made, but bound. */
static int replace_dev(void) {
        static const char *const devices[][2] = {{"/dev/null", "/tmp/dev/null"},
                                                 {"/dev/zero", "/tmp/dev/zero"},
                                                 {"/dev/full", "/tmp/dev/full"},
                                                 {"/dev/random", "/tmp/dev/random"},
                                                 {"/dev/urandom", "/tmp/dev/urandom"}};
        int r;

        if (mkdir("/tmp/dev", 0755) < 0)
                return -errno;
        r = make_private_tmpfs("/tmp/dev", "size=64k,mode=755");
        for (size_t i = 0; i < ELEMENTSOF(devices) && r == 0; i++) {
                int fd = open(devices[i][1], O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

                if (fd < 0)
                        return -errno;
                (void) close(fd);
                if (mount(devices[i][0], devices[i][1], NULL, MS_BIND, NULL) < 0)
                        return -errno;
        }
        if (r == 0 && mount("/tmp/dev", "/dev", NULL, MS_MOVE, NULL) < 0)
                return -errno;
        return r < 0 ? r : (rmdir("/tmp/dev") < 0 ? -errno : 0);
}

/* Mounts the container's own /proc. Where parts of the machine's /proc are covered, as inside
 * another container, the kernel refuses that (mount_too_revealing). Then an empty directory hides
 * the machine's. */
static int replace_proc(void) {
        if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) == 0)
                return 0;
        return make_private_tmpfs("/proc", "size=0,nr_inodes=1,mode=555");
}

/* Sockets of the machine's services would be reachable through a read-only mount, so /run is
 * hidden. */
static int replace_directories(void) {
        int r;

        r = make_private_tmpfs("/tmp", "size=16m,nr_inodes=4096,mode=1777");
        if (r == 0)
                r = make_private_tmpfs("/run", "size=64k,mode=755");
        if (r == 0)
                r = replace_dev();
        return r < 0 ? r : replace_proc();
}

/* --- an /etc with other files ----------------------------------------------------------------- */

typedef struct Entry { /* the layout of getdents64(2) */
        uint64_t ino;
        int64_t next;
        uint16_t size;
        uint8_t type;
        char name[];
} Entry;

/* Copies a symbolic link. The copy may exist already: getdents64() may list a name of a changing
 * directory twice. */
static int take_link(const char *from, const char *to) {
        char text[4096];
        ssize_t n = readlink(from, text, sizeof text);

        if (n < 0 || n == (ssize_t) sizeof text)
                return n < 0 ? -errno : -ENAMETOOLONG;
        text[n] = '\0';
        return symlink(text, to) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_target(const char *to, bool directory) {
        int fd;

        if (access(to, F_OK) == 0)
                return 0;
        if (directory)
                return mkdir(to, 0755) < 0 ? -errno : 0;
        fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return -errno;
        (void) close(fd); /* an empty file is enough as a mount point */
        return 0;
}

static int bind_entry(const char *from, const char *to, bool directory) {
        int r = make_target(to, directory);

        if (r == 0 && mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0) {
                r = -errno;
                (void) (directory ? rmdir(to) : unlink(to));
        }
        return r;
}

static bool is_in_etc(const SandboxMount *m) {
        return strncmp(m->to, "/etc/", 5) == 0;
}

static bool is_covered(const SandboxMount *mounts, size_t n, const char *path) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(mounts[i].to, path) == 0)
                        return true;
        return false;
}

/* Skips an entry that has disappeared, and one that a mount will cover: the machine may replace or
 * remove the original, and a removed file cannot be mounted over. */
static int take_entry(const SandboxMount *mounts, size_t n, const char *name) {
        char from[300], to[300];
        struct stat st;
        int r;

        if ((size_t) snprintf(from, sizeof from, "/etc/%s", name) >= sizeof from ||
            (size_t) snprintf(to, sizeof to, "/tmp/etc/%s", name) >= sizeof to)
                return -ENAMETOOLONG;
        if (is_covered(mounts, n, from))
                return 0;
        r = lstat(from, &st) < 0 ? -errno : 0;
        if (r == 0)
                r = S_ISLNK(st.st_mode) ? take_link(from, to) : bind_entry(from, to, S_ISDIR(st.st_mode));
        return r == -ENOENT ? 0 : r;
}

static int take_entries(int fd, const SandboxMount *mounts, size_t n_mounts) {
        union {
                Entry first;
                char bytes[4096];
        } buffer;
        long n;
        int r = 0;

        while (r == 0 && (n = syscall(SYS_getdents64, fd, &buffer, sizeof buffer)) != 0) {
                if (n < 0)
                        return -errno;
                for (long at = 0; r == 0 && at < n;) {
                        const Entry *e = (const Entry *) (buffer.bytes + at);

                        if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
                                r = take_entry(mounts, n_mounts, e->name);
                        at += e->size;
                }
        }
        return r;
}

/* In a read-only /etc no file can be made as a mount point. A mount over a file of the machine's
 * disappears when the machine replaces that file (rename(2), as ldconfig does). So a new /etc is
 * assembled aside from all entries and moved over the old one. */
static int replace_etc(const SandboxMount *mounts, size_t n) {
        _cleanup_close_ int fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (fd < 0 || mkdir("/tmp/etc", 0755) < 0)
                return -errno;
        r = make_private_tmpfs("/tmp/etc", "size=1m,mode=755");
        if (r == 0)
                r = take_entries(fd, mounts, n);
        if (r == 0 && mount("/tmp/etc", "/etc", NULL, MS_MOVE, NULL) < 0)
                r = -errno;
        return r < 0 ? r : (rmdir("/tmp/etc") < 0 ? -errno : 0);
}

/* --- mounts of the container ------------------------------------------------------------------ */

/* Opens the mounts before anything is hidden or sealed: they keep their own flags and can be
 * attached anywhere. */
static int take_mounts(const SandboxMount *mounts, size_t n, int *fds) {
        for (size_t i = 0; i < n; i++) {
                struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                      (mounts[i].read_only ? MOUNT_ATTR_RDONLY : 0)};

                fds[i] = open_tree(AT_FDCWD, mounts[i].from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
                if (fds[i] < 0 || mount_setattr(fds[i], "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                        return -errno;
        }
        return 0;
}

static int make_parents(const char *to) {
        char path[256];

        for (size_t i = 0; i < sizeof path && to[i]; i++) {
                path[i] = '\0';
                if (i > 0 && to[i] == '/' && access(path, F_OK) < 0 && mkdir(path, 0755) < 0)
                        return -errno;
                path[i] = to[i];
        }
        return 0;
}

static int put_mount(const char *to, int fd) {
        struct stat st;
        int r;

        r = fstat(fd, &st) < 0 ? -errno : make_parents(to);
        if (r == 0)
                r = make_target(to, S_ISDIR(st.st_mode));
        if (r == 0 && move_mount(fd, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                r = -errno;
        (void) close(fd); /* the mount is attached */
        return r;
}

static int seal_directory(const char *path) {
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

        return mount_setattr(AT_FDCWD, path, 0, &attr, sizeof attr) < 0 ? -errno : 0;
}

/* SLICE_RUN is a mount of its own, because a directory that only has mounts below it can be
 * renamed. *ret_step: the step that failed. */
static int put_mounts(const SandboxMount *mounts, size_t n, const int *fds, const char **ret_step) {
        bool replaced = false;
        int r = 0;

        if (n == 0)
                return 0;
        if (mkdir(SLICE_RUN, 0755) < 0)
                return -errno;
        r = make_private_tmpfs(SLICE_RUN, "size=64k,mode=755");
        for (size_t i = 0; i < n && r == 0; i++) {
                if (is_in_etc(&mounts[i]) && !replaced) {
                        *ret_step = "making an /etc of its own";
                        r = replace_etc(mounts, n);
                        replaced = true;
                }
                if (r == 0) {
                        *ret_step = mounts[i].to;
                        r = put_mount(mounts[i].to, fds[i]);
                }
        }
        if (r == 0)
                r = seal_directory(SLICE_RUN);
        return r == 0 && replaced ? seal_directory("/etc") : r;
}

/* --- ids and privileges ----------------------------------------------------------------------- */

static int become_root_inside(void) {
        /* setgroups is forbidden when the map was written without privileges; the process then has
         * only our own groups. */
        if (setgroups(0, NULL) < 0 && errno != EPERM)
                return -errno;
        if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
                return -errno;
        return 0;
}

static int drop_privileges(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

        /* Empties the bounding set first, which needs a capability; exec by uid 0 would fill the
         * other sets from it. The loop ends at the first number that this kernel does not know. */
        for (unsigned long cap = 0; cap < 64; cap++)
                if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
                        return -errno;
        if (syscall(SYS_capset, &header, none) < 0)
                return -errno;
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int set_hostname(const char *hostname) {
        size_t n = strlen(hostname);

        /* The host name of a pod is its name, cut to the kernel's limit. */
        return sethostname(hostname, n < 63 ? n : 63) < 0 ? -errno : 0;
}

int sandbox_enter(const char *hostname, const SandboxMount *mounts, size_t n, const char **ret_step) {
        const char *step = "taking on its ids";
        int fds[SANDBOX_MOUNTS] = {0}, r;

        r = become_root_inside();
        if (r == 0) {
                step = "setting its host name";
                r = set_hostname(hostname);
        }
        if (r == 0) {
                step = "taking its cards";
                r = n <= SANDBOX_MOUNTS ? take_mounts(mounts, n, fds) : -E2BIG;
        }
        if (r == 0) {
                step = "making the file system read-only";
                r = seal_files();
        }
        if (r == 0) {
                step = "mounting its own /tmp, /run, /dev and /proc";
                r = replace_directories();
        }
        if (r == 0) {
                step = "mounting its cards";
                r = put_mounts(mounts, n, fds, &step);
        }
        if (r == 0) {
                step = "dropping privileges";
                r = drop_privileges();
        }
        *ret_step = step;
        return r;
}

int sandbox_limit(bool large_files) {
        static const struct {
                __rlimit_resource_t resource;
                rlim_t limit;
                bool of_files;
        } limits[] = {
                {RLIMIT_CORE, 0, false},
                {RLIMIT_NOFILE, 256, true},
                /* counted per user of the machine, over all containers */
                {RLIMIT_NPROC, 4096, false},
                {RLIMIT_FSIZE, 16 * 1024 * 1024, true},
                {RLIMIT_DATA, 1024 * 1024 * 1024, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
                struct rlimit limit = {limits[i].limit, limits[i].limit};

                if (limits[i].of_files && large_files)
                        continue;
                if (setrlimit(limits[i].resource, &limit) < 0 &&
                    errno != EPERM) /* a lower hard limit may be set */
                        return -errno;
        }
        return 0;
}
