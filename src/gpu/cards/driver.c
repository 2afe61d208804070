/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "gpu/cards/soname.h"

#if defined __aarch64__
#define TRIPLET "aarch64-linux-gnu"
#else
#define TRIPLET "x86_64-linux-gnu"
#endif

#define COS                                                                                                  \
        "/home"                                                                                              \
        "/kubernetes/bin/nvidia" /* Google's host system */

enum { LINKS_MAX = 40 }; /* the kernel's limit */

/* Folders of Debian and Ubuntu; Debian's alternatives; Red Hat and SUSE; a driver in a container
 * (GPU operator); Google's host system; manual installations. Of a library that is in several, the
 * first is used. */
static const char *const library_folders[] = {
        "/usr/lib/" TRIPLET,
        "/usr/lib/" TRIPLET "/nvidia/current",
        "/usr/lib64",
        "/usr/lib64/nvidia",
        "/usr/lib",
        "/run/nvidia/driver/usr/lib/" TRIPLET,
        "/run/nvidia/driver/usr/lib64",
        COS "/lib64",
        "/usr/local/nvidia/lib64",
};

static const char *const smi_paths[] = {"/usr/bin/nvidia-smi", "/run/nvidia/driver/usr/bin/nvidia-smi",
                                        COS "/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"};

/* Prefixes of library names. Libraries for a screen need configuration files as well and are left
 * out. */
static const char *const given[] = {"libcuda.so", "libcudadebugger.so", "libnvcuvid.so", "libnvidia-"};
static const char *const screens[] = {
        "libnvidia-api",  "libnvidia-container", "libnvidia-egl",     "libnvidia-fbc",    "libnvidia-gl",
        "libnvidia-gtk",  "libnvidia-ngx",       "libnvidia-present", "libnvidia-rtcore", "libnvidia-tls",
        "libnvidia-vksc", "libnvidia-vulkan",    "libnvidia-wayland"};

typedef struct Finder {
        const char *root; /* without a final '/' */
        char version[64]; /* of the driver, such as 535.104.05; "" when not known */
        DriverFiles found;
        /* by index in found.files: its name in the folder is its SONAME, as of ldconfig's links */
        bool exact[DRIVER_FILES_MAX];
} Finder;

/* --- paths below the root --------------------------------------------------------------------- */

static void drop_last_name(Buf *path) {
        while (path->len > 0 && path->data[--path->len] != '/')
                ;
        if (path->data)
                path->data[path->len] = '\0';
}

/* Reads a symbolic link below the root; *ret is "" when the path is no link. Returns 0 or
 * -ENOMEM. */
static int read_link(const Finder *f, const Buf *path, char (*ret)[PATH_MAX]) {
        _cleanup_buf_ Buf full = BUF_NULL;
        ssize_t n;

        buf_appendf(&full, "%s%s", f->root, path->data);
        if (buf_result(&full) < 0)
                return -ENOMEM;
        n = readlink(full.data, *ret, sizeof *ret - 1);
        (*ret)[n > 0 ? n : 0] = '\0';
        return 0;
}

/* Replaces the link at the end of *done by its target: prepends the target to *rest, and sets *done
 * to the directory where the target starts. */
static int follow_link(Buf *done, Buf *rest, const char *target) {
        _cleanup_buf_ Buf all = BUF_NULL;

        buf_appendf(&all, "%s/%.*s", target, (int) rest->len, rest->data ? rest->data : "");
        if (target[0] == '/')
                buf_clear(done);
        else
                drop_last_name(done);
        buf_clear(rest);
        buf_append_str(rest, buf_str(&all));
        return buf_result(&all) < 0 ? -ENOMEM : buf_result(rest);
}

/* Moves the first name of *rest to the end of *done. Returns false if that needs no look at the
 * disk. */
static bool walk_name(Buf *rest, Buf *done) {
        Str behind = buf_str(rest), name = str_split(&behind, '/');
        bool named = !str_is_empty(name) && !str_eq(name, STR(".")) && !str_eq(name, STR(".."));

        if (named) {
                buf_append_char(done, '/');
                buf_append_str(done, name);
        } else if (str_eq(name, STR(".."))) {
                drop_last_name(done);
        }
        rest->len = behind.len;
        if (behind.len > 0)
                memmove(rest->data, behind.data, behind.len);
        return named;
}

/* Follows every symbolic link as if the root were "/", so that a link of the host stays on the
 * host. The file need not exist. Returns 0, -ELOOP or -ENOMEM; *done is the host's path. */
static int resolve_links(const Finder *f, Str path, Buf *done) {
        _cleanup_buf_ Buf rest = BUF_NULL;
        int links = 0, r;

        buf_append_str(&rest, path);
        if (buf_result(&rest) < 0)
                return -ENOMEM;
        while (rest.len > 0) {
                char target[PATH_MAX];

                if (!walk_name(&rest, done))
                        continue;
                r = buf_result(done);
                if (r == 0)
                        r = read_link(f, done, &target);
                if (r == 0 && target[0] != '\0')
                        r = ++links > LINKS_MAX ? -ELOOP : follow_link(done, &rest, target);
                if (r < 0)
                        return r;
        }
        if (done->len == 0)
                buf_append_char(done, '/');
        return buf_result(done);
}

static int open_below(const Finder *f, const Buf *path, int flags) {
        _cleanup_buf_ Buf full = BUF_NULL;
        int fd;

        buf_appendf(&full, "%s%s", f->root, path->data);
        if (buf_result(&full) < 0)
                return -ENOMEM;
        fd = open(full.data, flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

/* --- what was found --------------------------------------------------------------------------- */

static DriverFile *find_file(Finder *f, DriverFileKind kind, const char *target) {
        for (size_t i = 0; i < f->found.n; i++)
                if (f->found.files[i].kind == kind && strcmp(f->found.files[i].target, target) == 0)
                        return &f->found.files[i];
        return NULL;
}

static int add_file(Finder *f, DriverFileKind kind, const char *path, const char *target, bool exact) {
        DriverFile *file = find_file(f, kind, target);
        char *copy;

        if (!file && f->found.n == DRIVER_FILES_MAX)
                return 0;
        if (file && (f->exact[file - f->found.files] || !exact))
                return 0;
        copy = str_dup(str_from(path));
        if (!copy)
                return -ENOMEM;
        if (!file) {
                char *name = str_dup(str_from(target));

                if (!name) {
                        free(copy);
                        return -ENOMEM;
                }
                file = &f->found.files[f->found.n++];
                *file = (DriverFile){.kind = kind, .target = name};
        }
        free(file->path);
        file->path = copy;
        f->exact[file - f->found.files] = exact;
        return 0;
}

static int compare_files(const void *a, const void *b) {
        const DriverFile *x = a, *y = b;

        return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : strcmp(x->target, y->target);
}

/* --- libraries -------------------------------------------------------------------------------- */

static bool begins_with_one_of(const char *name, const char *const *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strncmp(name, list[i], strlen(list[i])) == 0)
                        return true;
        return false;
}

static bool is_given(const char *name) {
        return strstr(name, ".so.") && begins_with_one_of(name, given, ELEMENTSOF(given)) &&
               !begins_with_one_of(name, screens, ELEMENTSOF(screens));
}

/* The version in a path: "535.104.05" for libcuda.so.535.104.05, NULL for libcuda.so.1. */
static const char *version_in(const char *path) {
        const char *at = strstr(path, ".so.");

        return at && strchr(at + 4, '.') ? at + 4 : NULL;
}

/* A library of an earlier driver may be left on the host; it is not used. */
static bool is_of_driver(const Finder *f, const char *path) {
        const char *version = version_in(path);

        return !version || f->version[0] == '\0' || strcmp(version, f->version) == 0;
}

static int take_library(Finder *f, const char *folder, const char *name) {
        _cleanup_buf_ Buf path = BUF_NULL, real = BUF_NULL;
        _cleanup_close_ int fd = -1;
        char soname[SONAME_SIZE];
        int r;

        buf_appendf(&path, "%s/%s", folder, name);
        r = buf_result(&path);
        if (r == 0)
                r = resolve_links(f, buf_str(&path), &real);
        if (r < 0)
                return r == -ENOMEM ? r : 0; /* a circle of links is no library */
        fd = open_below(f, &real, 0);
        if (fd < 0 || !is_of_driver(f, real.data) || soname_read(fd, &soname) != 0 || !is_given(soname))
                return fd == -ENOMEM ? fd : 0;
        return add_file(f, DRIVER_LIBRARY, real.data, soname, strcmp(soname, name) == 0);
}

static int take_folder(Finder *f, const char *folder) {
        _cleanup_buf_ Buf real = BUF_NULL;
        const struct dirent *entry;
        DIR *listing;
        int fd, r;

        r = resolve_links(f, str_from(folder), &real);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        fd = open_below(f, &real, O_DIRECTORY);
        if (fd < 0)
                return fd == -ENOMEM ? fd : 0;
        listing = fdopendir(fd);
        if (!listing) {
                (void) close(fd);
                return -ENOMEM;
        }
        while (r == 0 && (entry = readdir(listing)))
                if (is_given(entry->d_name))
                        r = take_library(f, folder, entry->d_name);
        (void) closedir(listing);
        return r;
}

/* Reads the version from the target of ldconfig's link, which leads to the driver that is installed
 * now. */
static int find_version(Finder *f) {
        for (size_t i = 0; i < ELEMENTSOF(library_folders) && f->version[0] == '\0'; i++) {
                _cleanup_buf_ Buf path = BUF_NULL, real = BUF_NULL;
                const char *version;
                int r;

                buf_appendf(&path, "%s/libcuda.so.1", library_folders[i]);
                r = buf_result(&path);
                if (r == 0)
                        r = resolve_links(f, buf_str(&path), &real);
                if (r == -ENOMEM)
                        return r;
                version = r == 0 ? version_in(real.data) : NULL;
                if (version)
                        (void) snprintf(f->version, sizeof f->version, "%s", version);
        }
        return 0;
}

/* --- other files ------------------------------------------------------------------------------ */

static int take_file(Finder *f, DriverFileKind kind, const char *path, const char *target) {
        _cleanup_buf_ Buf real = BUF_NULL, full = BUF_NULL;
        struct stat st;
        int r;

        r = resolve_links(f, str_from(path), &real);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        buf_appendf(&full, "%s%s", f->root, real.data);
        if (buf_result(&full) < 0)
                return -ENOMEM;
        if (lstat(full.data, &st) < 0 || S_ISDIR(st.st_mode))
                return 0;
        return add_file(f, kind, real.data, target, false);
}

static int take_others(Finder *f) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(smi_paths); i++)
                r = take_file(f, DRIVER_FILE, smi_paths[i], "/usr/bin/nvidia-smi");
        if (r == 0) /* with this file an OpenCL loader finds libnvidia-opencl */
                r = take_file(f, DRIVER_FILE, "/etc/OpenCL/vendors/nvidia.icd",
                              "/etc/OpenCL/vendors/nvidia.icd");
        if (r == 0) /* used by profilers */
                r = take_file(f, DRIVER_DEVICE, "/dev/nvidia-uvm-tools", "/dev/nvidia-uvm-tools");
        return r;
}

void driver_files_done(DriverFiles *f) {
        for (size_t i = 0; i < f->n; i++) {
                free(f->files[i].path);
                free(f->files[i].target);
        }
        free(f->files);
        *f = (DriverFiles){0};
}

static int find_all(Finder *f) {
        int r;

        f->found.files = calloc(DRIVER_FILES_MAX, sizeof *f->found.files);
        if (!f->found.files)
                return -ENOMEM;
        r = find_version(f);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(library_folders); i++)
                r = take_folder(f, library_folders[i]);
        return r == 0 ? take_others(f) : r;
}

int driver_files_find(const char *host_root, DriverFiles *ret) {
        _cleanup_free_ char *root = NULL;
        Finder f = {.version = ""};
        Str text = str_from(host_root);
        int r;

        while (text.len > 0 && text.data[text.len - 1] == '/')
                text.len--;
        root = str_dup(text);
        if (!root)
                return -ENOMEM;
        f.root = root;
        r = find_all(&f);
        if (r < 0) {
                driver_files_done(&f.found);
                return r;
        }
        qsort(f.found.files, f.found.n, sizeof *f.found.files, compare_files);
        *ret = f.found;
        return 0;
}
