/* SPDX-License-Identifier: Apache-2.0 */
#include "node/isolation/preload_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/selinux.h"
#include "node/isolation/install.h"
#include "slicedir/slice_files.h"

#define LIBRARY "libaliquot.so"

static char *path_of(const char *directory, const char *name) {
        Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%s", directory, name);
        return buf_take(&path);
}

int preload_files_init(PreloadFiles *p, const char *state_dir, bool labels) {
        *p = PRELOAD_FILES_NULL;
        p->labels = labels;
        p->inside = path_of(state_dir, "inside");
        p->library = path_of(state_dir, "inside/" LIBRARY);
        return p->inside && p->library ? 0 : -ENOMEM;
}

void preload_files_done(PreloadFiles *p) {
        free(p->inside);
        free(p->library);
        if (p->held >= 0)
                (void) close(p->held);
        *p = PRELOAD_FILES_NULL;
}

/* ---- files and directories ---- */

void preload_files_folder(const PreloadFiles *p, size_t n, char ret[static PRELOAD_FOLDER]) {
        (void) snprintf(ret, PRELOAD_FOLDER, "%s/%zu", p->inside, n);
}

static int explain(const char *path, int r, Fault *fault) {
        return r < 0 ? fault_set(fault, r, "cannot make %s: %s", path, strerror(-r)) : 0;
}

/* Makes a directory that other users can read whatever our umask is, because containers run as
 * others. */
static int make_directory(const PreloadFiles *p, const char *path, Fault *fault) {
        _cleanup_close_ int fd = -1;

        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return explain(path, -errno, fault);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOTDIR)
                return explain(path, -EEXIST, fault);
        if (fd < 0 || fchmod(fd, 0755) < 0)
                return explain(path, -errno, fault);
        return p->labels ? selinux_label(fd, path, fault) : 0;
}

static int make_file(const PreloadFiles *p, const char *path, Fault *fault) {
        _cleanup_close_ int fd =
                open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0444);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return explain(path, -errno, fault);
        if (!S_ISREG(st.st_mode))
                return explain(path, -EEXIST, fault);
        return p->labels ? selinux_label(fd, path, fault) : 0;
}

/* ---- the library ---- */

int preload_files_install(PreloadFiles *p, const char *given, Fault *fault) {
        _cleanup_buf_ Buf library = BUF_NULL;
        int r;

        r = install_read(given, LIBRARY, "the library", &library, fault);
        if (r == 0)
                r = make_directory(p, p->inside, fault); /* first: the library inherits its label */
        if (r == 0)
                r = install_write(p->library, &library, &p->held, fault);
        if (r == 0 && p->labels) /* one that was there already */
                r = selinux_label(p->held, p->library, fault);
        return r == 0 ? install_check(p->library, p->held, fault) : r;
}

bool preload_files_are_complete(const PreloadFiles *p) {
        struct stat st;

        return stat(p->library, &st) == 0 && S_ISREG(st.st_mode) && access(p->library, R_OK) == 0;
}

/* ---- the directory of a container ---- */

static int make_card(const PreloadFiles *p, const char *folder, size_t card, Fault *fault) {
        static const char *const files[] = {"limits", "counters", SLICE_DOORBELL};
        char path[PRELOAD_FOLDER + 64];
        int r;

        (void) snprintf(path, sizeof path, "%s/slice/%zu", folder, card);
        r = make_directory(p, path, fault);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(files); i++) {
                (void) snprintf(path, sizeof path, "%s/slice/%zu/%s", folder, card, files[i]);
                r = make_file(p, path, fault);
        }
        return r;
}

int preload_files_make_folder(const PreloadFiles *p, size_t n, Fault *fault) {
        char folder[PRELOAD_FOLDER], path[PRELOAD_FOLDER + 64];
        int r;

        preload_files_folder(p, n, folder);
        r = make_directory(p, p->inside, fault);
        if (r == 0)
                r = make_directory(p, folder, fault);
        (void) snprintf(path, sizeof path, "%s/" LIBRARY, folder);
        if (r == 0)
                r = make_file(p, path, fault);
        (void) snprintf(path, sizeof path, "%s/slice", folder);
        if (r == 0)
                r = make_directory(p, path, fault);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = make_card(p, folder, i, fault);
        return r;
}
