/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/pod_processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/cleanup.h"

/* In version 2, "populated" in cgroup.events counts the processes of a cgroup and all below it, in
 * any PID namespace. In version 1, pids.current of the pids controller does the same. Only without
 * that controller are the cgroup.procs files read. They omit processes of foreign PID namespaces,
 * so the caller must then run in the host's (hostPID).
 *
 * The usual paths are tried first. Otherwise the tree is searched, because kubepods may be below a
 * --cgroup-root or the scope of an outer machine. Below kubepods only names that can lead to a pod
 * are entered. A full search happens mostly once, when the cgroup is gone: the cgroup of a running
 * pod is found by name, or after some hundred calls of readdir(). */

enum {
        UID_MAX = 64,
        NAME_LEN = 256,
        ROOT_DEPTH = 5, /* levels above kubepods */
        TREE_DEPTH = 32,
        DIRS_MAX = 2048, /* directories that one call may read */
        NUMBER_LEN = 256,
};

typedef struct Search {
        char plain[UID_MAX + 4];   /* "podUID", cgroupfs driver */
        char suffix[UID_MAX + 16]; /* "-podUID_WITH_UNDERSCORES.slice", systemd driver */
        bool v2;
        /* a kubepods cgroup was found; without one this is not the kubelet's tree */
        bool kubepods;
        unsigned left; /* directories that may still be read */
        char *path;    /* not NULL: takes the path of the pod's cgroup, of `size` bytes */
        size_t size;
        int error; /* negative errno of filling `path`; 0: none */
} Search;

/* Whether it may be a UID: a UUID, or the hash of a static pod's manifest. */
static bool uid_is_valid(Str uid) {
        if (uid.len == 0 || uid.len > UID_MAX)
                return false;
        for (size_t i = 0; i < uid.len; i++) {
                char c = uid.data[i];

                if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '-')
                        return false;
        }
        return true;
}

static int open_dir(int at, const char *name) {
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

/* A cgroup may be removed at any moment. One that is not found, or cannot be read any more
 * (ENODEV), is gone. */
static bool is_gone(int r) {
        return r == -ENOENT || r == -ENODEV || r == -ENOTDIR || r == -ELOOP;
}

/* Reads the beginning of a small file. Returns its length or negative errno. */
static ssize_t read_file(int dir, const char *name, char text[static NUMBER_LEN]) {
        _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        ssize_t n;

        if (fd < 0)
                return -errno;
        do
                n = read(fd, text, NUMBER_LEN - 1);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        return n;
}

/* ---- one cgroup of a pod ---- */

static PodProcesses verdict_of(int r) {
        return is_gone(r) ? POD_PROCESSES_NONE : POD_PROCESSES_UNKNOWN;
}

static PodProcesses check_v2(int pod) {
        char text[NUMBER_LEN];
        ssize_t n = read_file(pod, "cgroup.events", text);

        if (n < 0)
                return verdict_of((int) n);
        if (strstr(text, "populated 0"))
                return POD_PROCESSES_NONE;
        return strstr(text, "populated 1") ? POD_PROCESSES_SOME : POD_PROCESSES_UNKNOWN;
}

/* Opens a new descriptor of `dir`, so that it is read from its beginning. Counts as one directory
 * of DIRS_MAX. */
static int open_list(Search *s, int dir, DIR **ret) {
        _cleanup_close_ int fd = -1;
        DIR *list;

        if (s->left == 0)
                return -E2BIG;
        s->left--;
        fd = open_dir(dir, ".");
        if (fd < 0)
                return fd;
        list = fdopendir(fd);
        if (!list)
                return -errno;
        (void) TAKE_FD(fd); /* closedir() closes it */
        *ret = list;
        return 0;
}

DEFINE_CLEANUP(DIR *, closedir)

/* Returns the next directory in the list, or NULL at its end. Links are never followed. */
static const char *next_dir(DIR *list) {
        const struct dirent *e;

        while ((e = readdir(list)))
                if ((e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) && e->d_name[0] != '.')
                        return e->d_name;
        return NULL;
}

static PodProcesses check_procs(Search *s, int dir, unsigned depth);

static PodProcesses check_procs_below(Search *s, int dir, unsigned depth) {
        _cleanup_(closedirp) DIR *list = NULL;
        int r = open_list(s, dir, &list);
        const char *name;

        if (r < 0)
                return verdict_of(r);
        while ((name = next_dir(list))) {
                _cleanup_close_ int child = open_dir(dir, name);
                PodProcesses p = child < 0 ? verdict_of(child) : check_procs(s, child, depth + 1);

                if (p != POD_PROCESSES_NONE)
                        return p;
        }
        return POD_PROCESSES_NONE;
}

static PodProcesses check_procs(Search *s, int dir, unsigned depth) {
        char text[NUMBER_LEN];
        ssize_t n;

        if (depth > TREE_DEPTH)
                return POD_PROCESSES_UNKNOWN;
        n = read_file(dir, "cgroup.procs", text);
        if (n < 0)
                return verdict_of((int) n);
        return n > 0 ? POD_PROCESSES_SOME : check_procs_below(s, dir, depth);
}

static PodProcesses check_v1(Search *s, int pod) {
        char text[NUMBER_LEN] = "";

        if (read_file(pod, "pids.current", text) <= 0)
                return check_procs(s, pod, 0);
        return text[0] == '0' ? POD_PROCESSES_NONE : POD_PROCESSES_SOME;
}

/* The path of an open directory, in this mount namespace. 0 or negative errno. */
static int name_descriptor(int fd, char *ret, size_t size) {
        char link[64];
        ssize_t n;

        (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd); /* it fits */
        n = readlink(link, ret, size);
        if (n < 0)
                return -errno;
        if ((size_t) n == size)
                return -ENAMETOOLONG;
        ret[n] = '\0';
        return 0;
}

static PodProcesses check_pod(Search *s, int dir, const char *name) {
        _cleanup_close_ int pod = open_dir(dir, name);

        if (pod < 0)
                return verdict_of(pod);
        if (s->path) {
                s->error = name_descriptor(pod, s->path, s->size);
                return POD_PROCESSES_SOME;
        }
        return s->v2 ? check_v2(pod) : check_v1(s, pod);
}

/* ---- finding the cgroup of a pod ---- */

static bool ends_with(const char *name, const char *suffix) {
        size_t n = strlen(name), m = strlen(suffix);

        return n >= m && strcmp(name + n - m, suffix) == 0;
}

static bool is_pod(const Search *s, const char *name) {
        return strcmp(name, s->plain) == 0 || ends_with(name, s->suffix);
}

/* "kubepods", "kubepods.slice", or with a --cgroup-root "kubelet-kubepods.slice". */
static bool is_kubepods(const char *name) {
        return strcmp(name, "kubepods") == 0 || strcmp(name, "kubepods.slice") == 0 ||
               ends_with(name, "-kubepods.slice");
}

static bool is_class(const char *name) {
        return strcmp(name, "burstable") == 0 || strcmp(name, "besteffort") == 0 ||
               ends_with(name, "kubepods-burstable.slice") || ends_with(name, "kubepods-besteffort.slice");
}

/* Whether the cgroup belongs to a user's programs or to a service: a kubepods below it is not the
 * kubelet's. */
static bool is_foreign(const char *name) {
        return strcmp(name, "user.slice") == 0 || ends_with(name, ".service") || ends_with(name, ".mount");
}

static PodProcesses search_kubepods(Search *s, int kubepods, bool in_class) {
        _cleanup_(closedirp) DIR *list = NULL;
        int r = open_list(s, kubepods, &list);
        const char *name;

        s->kubepods = true;
        if (r < 0)
                return verdict_of(r);
        while ((name = next_dir(list))) {
                _cleanup_close_ int child = -1;
                PodProcesses p;

                if (is_pod(s, name))
                        return check_pod(s, kubepods, name);
                if (in_class || !is_class(name))
                        continue;
                child = open_dir(kubepods, name);
                p = child < 0 ? verdict_of(child) : search_kubepods(s, child, true);
                if (p != POD_PROCESSES_NONE)
                        return p;
        }
        return POD_PROCESSES_NONE;
}

/* Searches every kubepods at this level and below. */
static PodProcesses search_directory(Search *s, int dir, unsigned depth) {
        _cleanup_(closedirp) DIR *list = NULL;
        int r = open_list(s, dir, &list);
        const char *name;

        if (r < 0)
                return verdict_of(r);
        while ((name = next_dir(list))) {
                _cleanup_close_ int child = -1;
                PodProcesses p;

                if (is_foreign(name) || (depth == ROOT_DEPTH && !is_kubepods(name)))
                        continue;
                child = open_dir(dir, name);
                if (child < 0)
                        p = verdict_of(child);
                else if (is_kubepods(name))
                        p = search_kubepods(s, child, false);
                else
                        p = search_directory(s, child, depth + 1);
                if (p != POD_PROCESSES_NONE)
                        return p;
        }
        return POD_PROCESSES_NONE;
}

/* The path without --cgroup-root: kubepods/CLASS/pod or kubepods.slice/CLASS.slice/pod. */
static PodProcesses try_class(Search *s, int tree, const char *kubepods, const char *class, const char *pod) {
        _cleanup_close_ int parent = open_dir(tree, kubepods), child = -1;

        if (parent < 0)
                return verdict_of(parent);
        s->kubepods = true;
        if (!class)
                return check_pod(s, parent, pod);
        child = open_dir(parent, class);
        return child < 0 ? verdict_of(child) : check_pod(s, child, pod);
}

static PodProcesses try_usual(Search *s, int tree) {
        static const char *const classes[][2] = {
                {NULL, NULL},
                {"burstable", "kubepods-burstable.slice"},
                {"besteffort", "kubepods-besteffort.slice"},
        };
        PodProcesses p = POD_PROCESSES_NONE;

        for (size_t i = 0; i < ELEMENTSOF(classes) && p == POD_PROCESSES_NONE; i++) {
                char slice[NAME_LEN];

                p = try_class(s, tree, "kubepods", classes[i][0], s->plain);
                if (p != POD_PROCESSES_NONE)
                        break;
                (void) snprintf(slice, sizeof slice, "kubepods%s%s%s", i > 0 ? "-" : "",
                                i > 0 ? classes[i][0] : "", s->suffix);
                p = try_class(s, tree, "kubepods.slice", classes[i][1], slice);
        }
        return p;
}

static PodProcesses search_tree(Search *s, int tree) {
        PodProcesses p = try_usual(s, tree);

        if (p == POD_PROCESSES_NONE)
                p = search_directory(s, tree, 0);
        return p == POD_PROCESSES_NONE && !s->kubepods ? POD_PROCESSES_UNKNOWN : p;
}

/* ---- version 1: a tree for each controller ---- */

/* pids comes first, because it is the cheapest. A link, such as "cpu" to "cpu,cpuacct", stands for
 * another entry of this list. */
static const char *const controllers[] = {"pids",    "memory",      "cpu,cpuacct", "cpu",
                                          "cpuacct", "cpu,cpuacct", "cpuset",      "devices",
                                          "freezer", "blkio",       "systemd"};

static PodProcesses search_v1(Search *s, int root) {
        for (size_t i = 0; i < ELEMENTSOF(controllers); i++) {
                _cleanup_close_ int tree = open_dir(root, controllers[i]);
                PodProcesses p;

                if (tree < 0)
                        continue;
                p = search_tree(s, tree);
                if (s->kubepods)
                        return p;
        }
        return POD_PROCESSES_UNKNOWN;
}

static void search_init(Search *s, int root, Str uid) {
        *s = (Search){.left = DIRS_MAX, .v2 = faccessat(root, "cgroup.controllers", F_OK, 0) == 0};
        (void) snprintf(s->plain, sizeof s->plain, "pod" STR_FMT, STR_ARG(uid));
        (void) snprintf(s->suffix, sizeof s->suffix, "-%s.slice", s->plain);
        for (char *c = s->suffix + 1; *c; c++)
                if (*c == '-')
                        *c = '_';
}

PodProcesses pod_processes(const char *root, Str uid) {
        _cleanup_close_ int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        Search s;

        if (fd < 0)
                return POD_PROCESSES_UNKNOWN;
        if (!uid_is_valid(uid))
                return POD_PROCESSES_NONE; /* no kubelet makes a cgroup of that name */
        search_init(&s, fd, uid);
        return s.v2 ? search_tree(&s, fd) : search_v1(&s, fd);
}

int pod_processes_path(const char *root, Str uid, char *ret, size_t size) {
        _cleanup_close_ int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char top[PATH_MAX];
        size_t n;
        Search s;
        int r;

        if (fd < 0)
                return -errno;
        if (!uid_is_valid(uid))
                return -ENOENT;
        search_init(&s, fd, uid);
        if (!s.v2)
                return -EOPNOTSUPP;
        s.path = ret;
        s.size = size;
        if (search_tree(&s, fd) != POD_PROCESSES_SOME)
                return -ENOENT;
        r = s.error == 0 ? name_descriptor(fd, top, sizeof top) : s.error;
        if (r < 0)
                return r;
        n = strcmp(top, "/") == 0 ? 0 : strlen(top);
        if (strncmp(ret, top, n) != 0 || ret[n] != '/')
                return -ENOENT; /* it was moved meanwhile */
        memmove(ret, ret + n, strlen(ret + n) + 1);
        return 0;
}
