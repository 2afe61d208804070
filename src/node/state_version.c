/* SPDX-License-Identifier: Apache-2.0 */
#include "node/state_version.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "node/kubelet/pod_processes.h"
#include "slicedir/slice_tmpfs.h"
#include "slicedir/slicedir.h"

enum { OPEN_DIRECTORIES = 8 };

/* Calls each() for the entries of a directory until it returns non-zero, and returns that. 0: the
 * directory is missing. Negative errno with a fault: it cannot be read. */
static int each_entry(const char *directory, int (*each)(const char *path, const char *name, void *userdata),
                      void *userdata, Fault *fault) {
        DIR *entries = opendir(directory);
        const struct dirent *entry;
        char path[PATH_MAX];
        int r = 0;

        if (!entries)
                return errno == ENOENT
                               ? 0
                               : fault_set(fault, -errno, "cannot read %s: %s", directory, strerror(errno));
        while (r == 0 && (entry = readdir(entries)))
                if (entry->d_name[0] != '.' &&
                    snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) < (int) sizeof path)
                        r = each(path, entry->d_name, userdata);
        (void) closedir(entries);
        return r;
}

/* ---- what is held ---- */

typedef struct Held {
        const char *state_dir, *cgroups;
        Fault *fault;
} Held;

static int refuse(const Held *h, const char *what, const char *name) {
        return fault_set(h->fault, -EBUSY,
                         "%s is of another version of aliquot, and %s %s still has processes: first delete "
                         "all pods with GPU memory on this node, and end each aliquot run",
                         h->state_dir, what, name);
}

/* Refuses if the pod of a record has processes. A record is called UID.json, or UID.json.bad where
 * it could not be read. */
static int check_record(const char *path, const char *name, void *userdata) {
        const Held *h = userdata;
        const char *end = strstr(name, ".json");

        if (!end || pod_processes(h->cgroups, (Str){name, (size_t) (end - name)}) == POD_PROCESSES_NONE)
                return 0;
        return refuse(h, "the pod of", path);
}

/* Whether any process holds a lock of the file. */
static bool is_locked(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

        return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static int check_slice(const char *path, const char *name, void *userdata) {
        char file[PATH_MAX + 32];

        (void) snprintf(file, sizeof file, "%s/owner", path);
        if (is_locked(file))
                return refuse(userdata, "slice", name);
        for (unsigned i = 0; i < SLICEDIR_CARDS_MAX; i++) {
                (void) snprintf(file, sizeof file, "%s/%u/counters", path, i);
                if (is_locked(file))
                        return refuse(userdata, "slice", name);
        }
        return 0;
}

/* ---- removing ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        (void) remove(path);
        return 0;
}

static void remove_tree(const char *path) {
        (void) nftw(path, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
}

/* Removes a slice, which is a directory. `lock` and `arbiter` beside the slices are files, and
 * stay. */
static int remove_slice(const char *path, const char *name, void *userdata) {
        struct stat st;

        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
                (void) slice_tmpfs_unmount(path);
                remove_tree(path);
        }
        return 0;
}

static int start_clean(const char *state_dir, const char *slices, const char *cgroups, Fault *fault) {
        static const char *const names[] = {"inside", "cards.json", "fences.json", "terms.json", "pods"};
        Held held = {.state_dir = state_dir, .cgroups = cgroups, .fault = fault};
        char path[PATH_MAX];
        int r;

        (void) snprintf(path, sizeof path, "%s/pods", state_dir);
        r = each_entry(path, check_record, &held, fault);
        if (r == 0)
                r = each_entry(slices, check_slice, &held, fault);
        if (r == 0)
                r = each_entry(slices, remove_slice, NULL, fault);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(names); i++) {
                (void) snprintf(path, sizeof path, "%s/%s", state_dir, names[i]);
                remove_tree(path);
        }
        if (r == 0)
                log_warning("%s was of another version of aliquot and nothing of it is held: it was removed",
                            state_dir);
        return r;
}

int state_version_settle(const char *state_dir, const char *slices, const char *cgroups, Fault *fault) {
        char old[PATH_MAX];

        (void) snprintf(old, sizeof old, "%s/pods", state_dir);
        return access(old, F_OK) == 0 ? start_clean(state_dir, slices, cgroups, fault) : 0;
}
