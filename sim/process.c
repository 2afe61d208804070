/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { PATH_SIZE = 64, STATUS_SIZE = 4096, LEVELS_MAX = 33 }; /* MAX_PID_NS_LEVEL of the kernel is 32 */

/* ---- memory ---- */

/* A transfer stops at the first page that is not mapped, so the rest of the range is not tried. */
static int moved(ssize_t r, size_t n) {
        return r >= 0 && (size_t) r == n ? 0 : -EFAULT;
}

static const SimProcessCaller *process(const SimCaller *c) {
        return (const SimProcessCaller *) c;
}

static int read_memory(SimCaller *c, uint64_t at, void *to, size_t n) {
        struct iovec here = {to, n}, there = {(void *) at, n};

        return moved(process_vm_readv(process(c)->tid, &here, 1, &there, 1, 0), n);
}

static int write_memory(SimCaller *c, uint64_t at, const void *from, size_t n) {
        struct iovec here = {(void *) from, n}, there = {(void *) at, n};

        return moved(process_vm_writev(process(c)->tid, &here, 1, &there, 1, 0), n);
}

/* ---- pids ---- */

static PidSpace space_of(int fd) {
        struct stat st;

        return fd >= 0 && fstat(fd, &st) == 0 ? (PidSpace){st.st_dev, st.st_ino} : (PidSpace){0};
}

static bool same_space(PidSpace a, PidSpace b) {
        return a.ino != 0 && a.dev == b.dev && a.ino == b.ino;
}

static int open_space(pid_t pid) {
        char path[PATH_SIZE];

        (void) snprintf(path, sizeof path, "/proc/%d/ns/pid", (int) pid); /* it fits */
        return open(path, O_RDONLY | O_CLOEXEC);
}

/* The value of "KEY:" in /proc/PID/status; empty if it cannot be read. */
static Str status_line(pid_t pid, const char *key, char text[static STATUS_SIZE]) {
        char path[PATH_SIZE];
        _cleanup_close_ int fd = -1;
        ssize_t n;
        Str rest, line;

        (void) snprintf(path, sizeof path, "/proc/%d/status", (int) pid); /* it fits */
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, STATUS_SIZE);
        rest = (Str){text, n > 0 ? (size_t) n : 0};
        while (rest.len > 0) {
                line = str_split(&rest, '\n');
                if (str_eq(str_split(&line, ':'), str_from(key)))
                        return str_trim(line);
        }
        return (Str){0};
}

/* The kernel names the calling thread. */
static uint32_t pid_of(SimCaller *c) {
        const SimProcessCaller *p = process(c);
        char text[STATUS_SIZE];
        uint32_t pid;

        if (p->mount->proc && str_to_u32(status_line(p->tid, "Tgid", text), &pid))
                return pid;
        return (uint32_t) p->tid;
}

/* How many levels the namespace of a process is below `above`; -1: it is not below it. */
static int levels_below(pid_t pid, PidSpace above) {
        int fd = open_space(pid), levels = 0;

        while (fd >= 0 && levels < LEVELS_MAX && !same_space(space_of(fd), above)) {
                int up = ioctl(fd, NS_GET_PARENT);

                (void) close(fd); /* nothing was written that a late error could concern */
                fd = up;
                levels++;
        }
        if (fd < 0)
                return -1;
        (void) close(fd); /* as above */
        return levels < LEVELS_MAX ? levels : -1;
}

/* NSpid has the pid of a process in each namespace, from that of /proc downwards. */
static uint32_t nth_from_end(Str words, int back) {
        uint32_t found[LEVELS_MAX] = {0};
        int n = 0;

        while (words.len > 0 && n < LEVELS_MAX) {
                Str word = str_trim(str_split(&words, '\t'));

                if (!str_to_u32(word, &found[n++]))
                        return 0;
        }
        return back < n ? found[n - 1 - back] : 0;
}

static uint32_t pid_seen(SimCaller *c, uint32_t pid) {
        SimProcessCaller *p = (SimProcessCaller *) c;
        char text[STATUS_SIZE];
        int levels;

        if (!p->mount->proc)
                return pid;
        if (p->pids.ino == 0) {
                _cleanup_close_ int fd = open_space(p->tid);

                p->pids = space_of(fd);
        }
        if (same_space(p->pids, p->mount->pids))
                return pid;
        levels = levels_below((pid_t) pid, p->pids);
        return levels < 0 ? 0 : nth_from_end(status_line((pid_t) pid, "NSpid", text), levels);
}

/* ---- cgroups ---- */

/* Field 22 of /proc/PID/stat; the name before it may have any characters but its last ')'. */
static uint64_t start_of(pid_t pid) {
        enum { FIELDS_BETWEEN = 20 };
        char path[PATH_SIZE], text[STATUS_SIZE];
        _cleanup_close_ int fd = -1;
        uint64_t started;
        ssize_t n;
        Str rest;

        (void) snprintf(path, sizeof path, "/proc/%d/stat", (int) pid); /* it fits */
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        if (!strrchr(text, ')'))
                return 0;
        rest = str_from(strrchr(text, ')'));
        for (int i = 0; i < FIELDS_BETWEEN; i++)
                (void) str_split(&rest, ' ');
        return str_to_u64(str_split(&rest, ' '), &started) ? started : 0;
}

static uint64_t started_of(SimCaller *c) {
        return start_of((pid_t) pid_of(c));
}

/* The inode numbers of the cgroup with that path, and of those above it. */
static bool number_cgroup(const SimMount *m, SimCgroup *g) {
        char path[SIM_CGROUP_PATH];
        struct stat st;
        _cleanup_close_ int root = open(m->cgroups, O_PATH | O_DIRECTORY | O_CLOEXEC);

        (void) snprintf(path, sizeof path, "%s", g->path); /* it fits */
        for (g->n = 0; path[0] == '/' && g->n < SIM_CGROUP_DEPTH; *strrchr(path, '/') = '\0') {
                if (fstatat(root, path + 1, &st, 0) < 0)
                        return false;
                g->ids[g->n++] = st.st_ino;
        }
        return root >= 0 && path[0] == '\0';
}

/* The line "0::/PATH" of /proc/PID/cgroup; in a foreign cgroup namespace it begins with "/..". */
static bool cgroup_of(SimCaller *c, uint32_t pid, uint64_t started, SimCgroup *ret) {
        const SimMount *m = process(c)->mount;
        char path[PATH_SIZE], text[STATUS_SIZE];
        _cleanup_close_ int fd = -1;
        ssize_t n;
        Str rest;

        if (!m->cgroups || !m->proc || start_of((pid_t) pid) != started)
                return false;
        (void) snprintf(path, sizeof path, "/proc/%d/cgroup", (int) pid); /* it fits */
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof text);
        rest = (Str){text, n > 0 ? (size_t) n : 0};
        while (rest.len > 0) {
                Str line = str_split(&rest, '\n');

                if (!str_has_prefix(line, STR("0::/")) || line.len - 3 >= sizeof ret->path)
                        continue;
                line = str_eq(line, STR("0::/")) ? (Str){"", 0} : (Str){line.data + 3, line.len - 3};
                (void) snprintf(ret->path, sizeof ret->path, STR_FMT, STR_ARG(line)); /* it fits */
                return number_cgroup(m, ret);
        }
        return false;
}

/* The path below the mount: the last components of the whole one, as many as there are levels. */
static bool path_below(const char *link, SimCgroup *g) {
        const char *at = link + strlen(link);

        for (size_t level = 0; level < g->n; level++)
                do
                        if (at == link)
                                return false;
                while (*--at != '/');
        if (strlen(at) >= sizeof g->path)
                return false;
        (void) snprintf(g->path, sizeof g->path, "%s", at); /* it fits */
        return true;
}

static void append_up(char *path, size_t size) {
        size_t n = strlen(path);

        (void) snprintf(path + n, size - n, "/.."); /* there is room for SIM_CGROUP_DEPTH of them */
}

/* Asks only for what the kernel knows already, as is_ctl() does. */
static bool cgroup_at(SimCaller *c, int fd, SimCgroup *ret) {
        const SimMount *m = process(c)->mount;
        char path[PATH_SIZE + 3 * SIM_CGROUP_DEPTH], link[4096];
        struct statx st;
        ssize_t n;

        (void) snprintf(path, sizeof path, "/proc/%d/fd/%d", (int) process(c)->tid, fd); /* it fits */
        n = fd >= 0 && m->cgroups ? readlink(path, link, sizeof link - 1) : -1;
        if (n < 0)
                return false;
        link[n] = '\0';
        for (ret->n = 0; ret->n < SIM_CGROUP_DEPTH; ret->n++, append_up(path, sizeof path)) {
                if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO | STATX_MODE, &st) < 0 ||
                    !S_ISDIR(st.stx_mode))
                        return false;
                if (makedev(st.stx_dev_major, st.stx_dev_minor) != m->cgroup_dev)
                        break; /* above the mount */
                ret->ids[ret->n] = st.stx_ino;
        }
        if (ret->n-- == 0) /* the last one is the root */
                return false;
        return path_below(link, ret) &&
               !sim_cgroup_is_gone(m->cgroups, ret->path, ret->n > 0 ? ret->ids[0] : 0);
}

bool sim_cgroup_is_gone(const char *cgroups, const char *path, uint64_t id) {
        _cleanup_close_ int root = open(cgroups, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct stat st;

        if (path[0] == '\0')
                return false;
        return fstatat(root, path + 1, &st, 0) < 0 || st.st_ino != id;
}

/* ---- descriptors ---- */

/* Asks only for what the kernel knows already: a question to the file system would wait for this
 * thread. */
static bool is_ctl(SimCaller *c, int fd) {
        const SimProcessCaller *p = process(c);
        char path[PATH_SIZE];
        struct statx st;

        (void) snprintf(path, sizeof path, "/proc/%d/fd/%d", (int) p->tid, fd); /* it fits */
        return fd >= 0 && p->mount->proc && statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st) == 0 &&
               makedev(st.stx_dev_major, st.stx_dev_minor) == p->mount->dev && st.stx_ino == p->mount->ctl;
}

static struct SimFile *file_of(SimCaller *c, int fd) {
        const SimProcessCaller *p = process(c);

        return p->file && p->fd == fd ? p->file : NULL;
}

/* A container runtime may have kept the /proc of the namespace above. */
static bool proc_is_ours(void) {
        char link[PATH_SIZE];
        ssize_t n = readlink("/proc/self", link, sizeof link);
        uint32_t pid;

        return n > 0 && (size_t) n < sizeof link && str_to_u32((Str){link, (size_t) n}, &pid) &&
               pid == (uint32_t) getpid();
}

int sim_mount_init(SimMount *m, const char *dir, uint64_t ctl) {
        _cleanup_close_ int fd = open_space(getpid());
        struct statx st;

        if (statx(AT_FDCWD, dir, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &st) < 0)
                return -errno;
        *m = (SimMount){.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
                        .ctl = ctl,
                        .pids = space_of(fd),
                        .proc = proc_is_ours()};
        return 0;
}

int sim_mount_cgroups(SimMount *m, const char *cgroups) {
        struct stat st;

        if (stat(cgroups, &st) < 0)
                return -errno;
        m->cgroups = cgroups;
        m->cgroup_dev = st.st_dev;
        return 0;
}

void sim_process_caller_init(SimProcessCaller *p, const SimMount *m, pid_t tid, uint32_t uid) {
        *p = (SimProcessCaller){.caller = {.uid = uid,
                                           .read = read_memory,
                                           .write = write_memory,
                                           .pid = pid_of,
                                           .pid_seen = pid_seen,
                                           .started = started_of,
                                           .cgroup = cgroup_of,
                                           .cgroup_at = cgroup_at,
                                           .is_ctl = is_ctl,
                                           .file = file_of},
                                .mount = m,
                                .tid = tid};
}
