/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/host_facts.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/locate.h"
#include "base/selinux.h"
#include "slicedir/slicedir.h"

#define PLUGINS      "/var/lib/kubelet/device-plugins"
#define AGENT_SOCKET PLUGINS "/aliquot-gpu-mem.sock" /* node/plugins.c */
#define INSTALLED    "/var/lib/aliquot/inside/libaliquot.so"
#define LIBRARY      "libaliquot.so"

enum { TEXT_MAX = 4 << 20, LIBRARY_MAX = 16 << 20, PROCESSES_MSEC = 500 };

static const char *const file_paths[] = {
#define FACTS_ROW(name, path) [HOST_##name] = path,
        FACTS_FILES(FACTS_ROW)
#undef FACTS_ROW
};

static const char *const looked_at[] = {
        [PATH_CONTAINERD_SOCKET] = "/run/containerd/containerd.sock:/run/k3s/containerd/containerd.sock",
        [PATH_CRIO_SOCKET] = "/run/crio/crio.sock",
        [PATH_DOCKER_SOCKET] = "/run/cri-dockerd.sock:/run/dockershim.sock",
        [PATH_PLUGINS] = PLUGINS,
};

/* Returns ROOT/PATH, owned by the caller, or NULL. */
static char *path_below(const char *root, Str path) {
        Buf text = BUF_NULL;

        buf_appendf(&text, "%s" STR_FMT, strcmp(root, "/") == 0 ? "" : root, STR_ARG(path));
        return buf_take(&text);
}

bool host_facts_exist(const char *root, const char *paths) {
        Str rest = str_from(paths);

        while (rest.len > 0) {
                _cleanup_free_ char *path = path_below(root, str_split(&rest, ':'));

                if (path && access(path, F_OK) == 0)
                        return true;
        }
        return false;
}

/* Reads the first of the paths that exists. */
static void read_text(const char *root, const char *paths, Fact *ret) {
        Str rest = str_from(paths);
        int r = -ENOENT;

        while (rest.len > 0 && r == -ENOENT) {
                _cleanup_free_ char *path = path_below(root, str_split(&rest, ':'));
                _cleanup_buf_ Buf text = BUF_NULL;

                r = path ? file_read(path, TEXT_MAX, &text) : -ENOMEM;
                if (r == 0)
                        fact_know(ret, buf_take(&text), false);
                else
                        fact_fail(ret, -r, path ? path : "");
        }
}

/* Calls visit() with each name of the folder. Returns how many there are, or negative errno. */
static int each_name(const char *path, void (*visit)(void *userdata, const char *folder, const char *name),
                     void *userdata) {
        DIR *folder = opendir(path);
        const struct dirent *entry;
        int n = 0;

        if (!folder)
                return -errno;
        while ((entry = readdir(folder)))
                if (entry->d_name[0] != '.') {
                        if (visit)
                                visit(userdata, path, entry->d_name);
                        n++;
                }
        (void) closedir(folder);
        return n;
}

/* ---- the driver's files ---- */

static void count_card(void *userdata, const char *folder, const char *name) {
        HostFacts *h = userdata;
        uint32_t minor;

        (void) folder;
        if (strncmp(name, "nvidia", 6) == 0 && str_to_u32(str_from(name + 6), &minor))
                h->n_cards++;
}

static int read_driver(HostFacts *h) {
        _cleanup_free_ char *gpus = path_below(h->root, STR("/proc/driver/nvidia/gpus")),
                            *ctl = path_below(h->driver, STR("/nvidiactl"));

        if (!gpus || !ctl)
                return -ENOMEM;
        h->paths[PATH_CTL] = host_facts_exist(h->driver, "/nvidiactl");
        h->paths[PATH_UVM] = host_facts_exist(h->driver, "/nvidia-uvm");
        h->n_gpus = h->simulated ? -1 : each_name(gpus, NULL, NULL);
        (void) each_name(h->driver, count_card, h); /* without the directory there are none */
        h->locks = h->paths[PATH_CTL] ? file_check_locks(ctl) : -ENOENT;
        return 0;
}

/* ---- slices and their library ---- */

static void check_label(HostFacts *h, const char *path) {
        if (h->selinux && !h->unlabelled[0] && access(path, F_OK) == 0 && !selinux_is_labelled(path))
                (void) snprintf(h->unlabelled, sizeof h->unlabelled, "%s", path);
}

/* Counts a slice and checks its label. Slices of containers have the file that the dynamic linker
 * reads; others have none. */
static void count_slice(void *userdata, const char *folder, const char *name) {
        HostFacts *h = userdata;
        struct stat st;
        char path[512], preload[512 + sizeof "/" SLICEDIR_PRELOAD];

        if ((size_t) snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path ||
            stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                return;
        h->slices_n++;
        (void) snprintf(preload, sizeof preload, "%s/%s", path, SLICEDIR_PRELOAD);
        check_label(h, preload);
}

static int read_slices(HostFacts *h) {
        const char *named = secure_getenv("ALIQUOT_SLICES");
        char *path = path_below(named && named[0] ? "/" : h->root,
                                str_from(named && named[0] ? named : SLICEDIR_DEFAULT));
        struct statvfs fs;
        int r;

        if (!path)
                return -ENOMEM;
        r = each_name(path, count_slice, h);
        if (r >= 0 && statvfs(path, &fs) == 0)
                h->slices_free = (uint64_t) fs.f_bavail * fs.f_frsize;
        if (r < 0)
                fact_fail(&h->slices, -r, path);
        else
                fact_know(&h->slices, TAKE_PTR(path), false);
        free(path);
        return 0;
}

typedef struct LibraryScan {
        HostFacts *facts;
        ino_t installed; /* inode of the installed library; 0: none */
        usec_t end;
} LibraryScan;

/* Looks for the library in the maps of a process. A container that started before an upgrade keeps
 * the file that was there then: its mapping has another inode. */
static void read_maps(void *userdata, const char *folder, const char *name) {
        LibraryScan *scan = userdata;
        _cleanup_buf_ Buf maps = BUF_NULL;
        char path[512], *line;
        uint32_t pid;

        if (!str_to_u32(str_from(name), &pid) || clock_monotonic_usec() > scan->end)
                return;
        if ((size_t) snprintf(path, sizeof path, "%s/%s/maps", folder, name) >= sizeof path ||
            file_read(path, TEXT_MAX, &maps) < 0 || maps.len == 0)
                return; /* the process has ended, or belongs to another user */
        line = strstr(maps.data, "/" LIBRARY);
        if (!line)
                return;
        while (line > maps.data && line[-1] != '\n')
                line--;
        scan->facts->library_users++;
        /* address perms offset dev inode path (proc(5)) */
        for (int field = 0; field < 4; field++)
                line += strcspn(line, " ") + strspn(line + strcspn(line, " "), " ");
        scan->facts->library_old += scan->installed > 0 && strtoull(line, NULL, 10) != scan->installed;
}

static bool is_same(const char *one, const char *other) {
        _cleanup_buf_ Buf a = BUF_NULL, b = BUF_NULL;

        return file_read(one, LIBRARY_MAX, &a) == 0 && file_read(other, LIBRARY_MAX, &b) == 0 &&
               str_eq(buf_str(&a), buf_str(&b));
}

static int read_library(HostFacts *h) {
        _cleanup_free_ char *installed = path_below(h->root, STR(INSTALLED)),
                            *proc = path_below(h->root, STR("/proc"));
        LibraryScan scan = {.facts = h, .end = clock_monotonic_usec() + PROCESSES_MSEC * USEC_PER_MSEC};
        Fault why = FAULT_NULL;
        char own[LOCATE_PATH];
        struct stat st;
        int r;

        if (!installed || !proc)
                return -ENOMEM;
        check_label(h, installed);
        r = locate_file(LIBRARY, own, sizeof own, &why);
        if (r == 0)
                fact_know(&h->library, str_dup(str_from(own)), false);
        else {
                fact_fail(&h->library, -r, LIBRARY);
                h->library.why = why;
        }
        if (stat(installed, &st) == 0)
                scan.installed = st.st_ino;
        h->library_same = r < 0 || scan.installed == 0 || is_same(own, installed);
        (void) each_name(proc, read_maps, &scan); /* without /proc no process is found */
        return 0;
}

/* ---- the kubelet's folder of plugins ---- */

static void keep_name(void *userdata, const char *folder, const char *name) {
        (void) folder;
        /* out of memory: the name is missing */
        (void) json_array_append_new(userdata, json_string(name));
}

static void dial_socket(const char *path, Fact *ret) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || strlen(path) >= sizeof address.sun_path) {
                fact_fail(ret, fd < 0 ? errno : ENAMETOOLONG, path);
                return;
        }
        memcpy(address.sun_path, path, strlen(path) + 1);
        if (connect(fd, (const struct sockaddr *) &address, sizeof address) == 0 || errno == EAGAIN)
                fact_know(ret, str_dup(STR("")), false);
        else
                fact_fail(ret, errno, path);
}

static int read_plugins(HostFacts *h) {
        _cleanup_free_ char *plugins = path_below(h->root, STR(PLUGINS)),
                            *agent = path_below(h->root, STR(AGENT_SOCKET));

        h->plugin_sockets = json_array();
        if (!plugins || !agent || !h->plugin_sockets)
                return -ENOMEM;
        if (each_name(plugins, keep_name, h->plugin_sockets) >= 0)
                dial_socket(agent, &h->agent_socket);
        return 0;
}

int host_facts_read(HostFacts *h) {
        _cleanup_free_ char *proc = path_below(h->root, STR("/proc"));
        struct utsname name;
        int r;

        if (!proc)
                return -ENOMEM;
        h->selinux = selinux_is_on(proc);
        if (uname(&name) == 0)
                (void) snprintf(h->release, sizeof h->release, "%s", name.release);
        for (int i = 0; i < HOST_FILES_; i++)
                read_text(h->root, file_paths[i], &h->files[i]);
        for (int i = PATH_CONTAINERD_SOCKET; i < HOST_PATHS_; i++)
                h->paths[i] = host_facts_exist(h->root, looked_at[i]);
        r = read_driver(h);
        if (r == 0)
                r = read_slices(h);
        if (r == 0)
                r = read_library(h);
        return r == 0 ? read_plugins(h) : r;
}
