/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/cdi_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/selinux.h"
#include "slice/container_paths.h"

#if defined __aarch64__
#define DEBIAN_FOLDER "/usr/lib/aarch64-linux-gnu"
#else
#define DEBIAN_FOLDER "/usr/lib/x86_64-linux-gnu"
#endif

enum { NAME_MAX_ = 63, MOUNTS = 16 + 3 * SLICEDIR_CARDS_MAX, VARIABLES = 8, FILE_MAX = 1 << 20 };

bool cdi_file_is_name(const char *text) {
        size_t n = strlen(text);

        for (size_t i = 0; i < n; i++) {
                bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
                bool digit = text[i] >= '0' && text[i] <= '9';

                if (!letter && (i == 0 || !digit) &&
                    (i == 0 || i == n - 1 || (text[i] != '_' && text[i] != '-')))
                        return false;
        }
        return n > 0 && n <= NAME_MAX_;
}

/* ---- the device ---- */

/* The parts of a device; it owns their texts. broken: out of memory. */
typedef struct Device {
        CdiMount mounts[MOUNTS];
        size_t n_mounts;
        char *variables[VARIABLES];
        size_t n_variables;
        uint32_t minors[SLICEDIR_CARDS_MAX];
        bool broken;
} Device;

static void device_done(Device *d) {
        for (size_t i = 0; i < d->n_mounts; i++) {
                free((char *) d->mounts[i].from);
                free((char *) d->mounts[i].to);
        }
        for (size_t i = 0; i < d->n_variables; i++)
                free(d->variables[i]);
}

static int add_variable(void *userdata, const char *name, const char *value) {
        Device *d = userdata;

        if (d->n_variables == VARIABLES || asprintf(&d->variables[d->n_variables], "%s=%s", name, value) < 0)
                return -ENOMEM;
        d->n_variables++;
        return 0;
}

/* Returns both texts as one; NULL: out of memory. */
static char *join_path(const char *folder, const char *name) {
        char *path;

        return asprintf(&path, "%s%s", folder, name) < 0 ? NULL : path;
}

/* Adds the mount of file `name` from folder `from` into folder `to`. */
static void add_mount(Device *d, bool writable, const char *from, const char *to, const char *name) {
        CdiMount *m = &d->mounts[d->n_mounts];

        assert(d->n_mounts < MOUNTS);
        *m = (CdiMount){.from = join_path(from, name), .to = join_path(to, name), .writable = writable};
        d->n_mounts++;
        d->broken |= !m->from || !m->to;
}

/* Adds mounts for a simulated driver. Its files are plain files, so a device node would not do. */
static void add_simulated(Device *d, const Command *c, const char *nvml) {
        static const char *const files[] = {"/nvidiactl", "/nvidia-uvm", "/nvidia-uvm-tools"};
        _cleanup_free_ char *devices = realpath(c->devices, NULL); /* ALIQUOT_SIM_DIR may be relative */
        char folder[SLICEDIR_PATH_SIZE], name[32];

        d->broken |= !devices;
        if (!devices)
                return;
        (void) snprintf(folder, sizeof folder, "%.*s", (int) (strrchr(nvml, '/') - nvml), nvml);
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                add_mount(d, true, devices, "/dev", files[i]);
        for (uint32_t i = 0; i < c->n_cards; i++) {
                (void) snprintf(name, sizeof name, "/nvidia%u", c->cards[i]->minor);
                add_mount(d, true, devices, "/dev", name);
        }
        add_mount(d, false, folder, DEBIAN_FOLDER, "/libcuda.so.1");
        add_mount(d, false, folder, DEBIAN_FOLDER, "/libnvidia-ml.so.1");
        add_mount(d, false, folder, "/usr/lib64", "/libcuda.so.1");
        add_mount(d, false, folder, "/usr/lib64", "/libnvidia-ml.so.1");
        add_mount(d, false, folder, "/usr/bin", "/nvidia-smi");
}

/* Adds the mounts of the slice, each directory before what is mounted in it. */
static void add_slice(Device *d, const Command *c, const char *inside) {
        char name[32];

        add_mount(d, false, inside, SLICE_MOUNT_DIR, "");
        add_mount(d, false, c->gate, SLICE_GATE, "");
        add_mount(d, false, c->slices, SLICE_PAGES, "");
        for (uint32_t i = 0; i < c->n_cards; i++) {
                (void) snprintf(name, sizeof name, "/%u/counters", i);
                add_mount(d, true, c->slices, SLICE_PAGES, name);
                (void) snprintf(name, sizeof name, "/%u/" SLICE_DOORBELL, i);
                add_mount(d, true, c->slices, SLICE_PAGES, name);
        }
        add_mount(d, false, c->slices, "/etc", "/" SLICEDIR_PRELOAD);
}

static int describe_device(const char *name, const Command *c, const char *inside, const char *nvml, Buf *out,
                           Fault *fault) {
        _cleanup_(driver_files_done) DriverFiles driver = {0};
        _cleanup_(device_done) Device d = {.n_mounts = 0};
        int r = nvml ? 0 : driver_files_find("/", &driver);

        if (r == 0)
                r = command_variables(c, add_variable, &d);
        for (uint32_t i = 0; i < c->n_cards; i++)
                d.minors[i] = c->cards[i]->minor;
        if (nvml)
                add_simulated(&d, c, nvml);
        add_slice(&d, c, inside);
        if (r < 0 || d.broken)
                return fault_set(fault, -ENOMEM, "out of memory");
        cdi_write_slice(&(CdiSlice){.name = name,
                                    .variables = (const char *const *) d.variables,
                                    .n_variables = d.n_variables,
                                    .minors = d.minors,
                                    .n_minors = nvml ? 0 : c->n_cards,
                                    .driver = &driver,
                                    .mounts = d.mounts,
                                    .n_mounts = d.n_mounts},
                        out);
        return buf_result(out) < 0 ? fault_set(fault, -ENOMEM, "out of memory") : 0;
}

/* ---- the files ---- */

/* Makes DIR.inside with its mount points. It is never removed: Linux drops a mount when the file
 * that it is mounted on is removed, and the loader then continues without the library. */
static int make_inside(const Slicedir *d, char ret[static SLICEDIR_PATH_SIZE], Fault *fault) {
        _cleanup_close_ int dir = -1, pages = -1, gate = -1;
        int r;

        if ((size_t) snprintf(ret, SLICEDIR_PATH_SIZE, "%s.inside", d->path) >= SLICEDIR_PATH_SIZE)
                return fault_set(fault, -ENAMETOOLONG, "the path is too long: %s", d->path);
        if (mkdir(ret, 0755) < 0 && errno != EEXIST)
                return fault_set(fault, -errno, "cannot make %s: %s", ret, strerror(errno));
        dir = open(ret, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        r = dir >= 0 ? slicedir_check_own(dir, ret, fault) : 0;
        if (r < 0)
                return r;
        if (dir >= 0 && (mkdirat(dir, "slice", 0755) == 0 || errno == EEXIST))
                pages = openat(dir, "slice", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (pages >= 0)
                gate = openat(dir, "libaliquot.so", O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                              0444);
        /* for all users of containers, whatever the umask is */
        if (gate < 0 || fchmod(dir, 0755) < 0 || fchmod(pages, 0755) < 0)
                return fault_set(fault, -errno, "cannot make the mount points in %s: %s", ret,
                                 strerror(errno));
        if (d->labels) {
                const int labelled[] = {dir, pages, gate};

                for (size_t i = 0; i < ELEMENTSOF(labelled) && r == 0; i++)
                        r = selinux_label(labelled[i], ret, fault);
        }
        return r;
}

static int make_dir(const char *dir, Fault *fault) {
        return mkdir(dir, 0755) < 0 && errno != EEXIST
                       ? fault_set(fault, -errno, "cannot make %s: %s", dir, strerror(errno))
                       : 0;
}

static int refuse_write(const char *path, int error, Fault *fault) {
        return fault_set(fault, -error, "cannot write %s: %s", path, strerror(error));
}

/* Writes the file under another name first: runtimes read *.json, so none sees an incomplete
 * file. */
static int write_file(const char *path, const Buf *text, Fault *fault) {
        char beside[SLICEDIR_PATH_SIZE + 8];
        _cleanup_close_ int fd = -1;
        int r;

        (void) snprintf(beside, sizeof beside, "%s.new", path);
        (void) unlink(beside); /* left by a run that was killed */
        errno = 0;             /* a short write sets no errno */
        fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd >= 0 && write(fd, text->data, text->len) == (ssize_t) text->len && rename(beside, path) == 0)
                return 0;
        r = errno != 0 ? errno : EIO;
        if (fd >= 0)
                (void) unlink(beside);
        return refuse_write(path, r, fault);
}

static int stop_at(void *userdata, const SlicedirEntry *slice) {
        return strcmp(slice->id, userdata) == 0;
}

/* Whether the slice is alive. pages: DIR/NAME. Where DIR cannot be read, it counts as alive. */
static bool is_alive(char *pages) {
        _cleanup_(slicedir_done) Slicedir d = SLICEDIR_NULL;
        char *slash = strrchr(pages, '/');
        int r;

        if (!slash)
                return false;
        *slash = '\0';
        r = slicedir_open(&d, pages, false, NULL);
        return r != -ENOENT && r != -ENOTDIR && (r < 0 || slicedir_each(&d, stop_at, slash + 1) != 0);
}

/* Refuses a name when its file describes a living slice of another directory: its containers would
 * get into ours. A file that cannot be read, or that is no specification of ours, is replaced. */
static int check_free(const char *path, const char *slices, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        _cleanup_free_ char *pages = NULL;
        CdiSliceFound found;
        int r = file_read(path, FILE_MAX, &text);

        if (r == 0)
                r = cdi_read_slice(buf_str(&text), STR(SLICE_PAGES), &arena, &found);
        if (r != 0)
                return r == -ENOMEM ? fault_set(fault, r, "out of memory") : 0;
        if (str_eq(found.pages, str_from(slices)))
                return 0;
        pages = str_dup(found.pages);
        if (!pages)
                return fault_set(fault, -ENOMEM, "out of memory");
        return is_alive(pages) ? fault_set(fault, -EEXIST,
                                           "%s describes a living slice of the card " STR_FMT
                                           ", counted in %s: choose another name",
                                           path, STR_ARG(found.cards), pages)
                               : 0;
}

/* Writes the file if the name is free. Two runs at the same moment must see each other's file: both
 * lock a file beside it, which only its owner can open. Any reader of the folder could lock the
 * folder itself. */
static int write_free(const char *dir, const char *path, const Command *c, const Buf *text, Fault *fault) {
        char lock[SLICEDIR_PATH_SIZE];
        _cleanup_close_ int fd = -1;
        int r;

        (void) snprintf(lock, sizeof lock, "%s/.aliquot.lock", dir); /* shorter than path */
        fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return refuse_write(path, errno, fault);
        do
                r = flock(fd, LOCK_EX);
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return refuse_write(path, errno, fault);
        r = check_free(path, c->slices, fault);
        return r == 0 ? write_file(path, text, fault) : r;
}

int cdi_file_write(const char *dir, const char *name, const Command *c, Slicedir *d, const char *nvml,
                   CdiFile *ret, Fault *fault) {
        char inside[SLICEDIR_PATH_SIZE], path[SLICEDIR_PATH_SIZE];
        _cleanup_buf_ Buf text = BUF_NULL;
        int r;

        if ((size_t) snprintf(path, sizeof path, "%s/aliquot.dev-slice-%s.json", dir, name) >= sizeof path)
                return fault_set(fault, -ENAMETOOLONG, "the path is too long: %s", dir);
        r = make_inside(d, inside, fault);
        if (r == 0)
                r = slicedir_write_preload(d, name, fault);
        if (r == 0)
                r = describe_device(name, c, inside, nvml, &text, fault);
        if (r == 0)
                r = make_dir(dir, fault);
        if (r == 0)
                r = write_free(dir, path, c, &text, fault);
        if (r == 0)
                (void) snprintf(ret->path, sizeof ret->path, "%s", path);
        return r;
}

void cdi_file_remove(CdiFile *f) {
        if (f->path[0] != '\0')
                (void) unlink(f->path);
        f->path[0] = '\0';
}
