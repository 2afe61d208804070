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
#include "node/isolation/install.h"
#include "slice/container_paths.h"
#include "slicedir/slice_files.h"

#define LIBRARY "libaliquot.so"

static char *path_of(const char *directory, const char *name) {
        Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%s", directory, name);
        return buf_take(&path);
}

int preload_files_init(PreloadFiles *p, const char *state_dir) {
        struct stat st;

        *p = PRELOAD_FILES_NULL;
        p->inside = path_of(state_dir, "inside");
        p->library = path_of(state_dir, "inside/" LIBRARY);
        p->run = path_of(state_dir, "gate");
        p->run_library = path_of(state_dir, "gate/" LIBRARY);
        p->run_preload = path_of(state_dir, "gate/ld.so.preload");
        if (!p->inside || !p->library || !p->run || !p->run_library || !p->run_preload)
                return -ENOMEM;
        p->has_run = stat(p->run, &st) == 0 && S_ISDIR(st.st_mode);
        return 0;
}

void preload_files_done(PreloadFiles *p) {
        free(p->inside);
        free(p->library);
        free(p->run);
        free(p->run_library);
        free(p->run_preload);
        for (size_t i = 0; i < ELEMENTSOF(p->held); i++)
                if (p->held[i] >= 0)
                        (void) close(p->held[i]);
        *p = PRELOAD_FILES_NULL;
}

/* ---- the library ---- */

static int install_library(const char *path, const Buf *text, int *ret_held, Fault *fault) {
        int r = install_write(path, text, ret_held, fault);

        return r == 0 ? install_check(path, *ret_held, fault) : r;
}

/* Installs the same library for pods of the older layout: it looks for its pages in both places. */
static int install_run(PreloadFiles *p, const Buf *library, Fault *fault) {
        _cleanup_buf_ Buf preload = BUF_NULL;
        int r;

        buf_append_str(&preload, STR(SLICE_RUN_GATE "\n"));
        if (buf_result(&preload) < 0)
                return -ENOMEM;
        r = install_library(p->run_library, library, &p->held[1], fault);
        return r == 0 ? install_write(p->run_preload, &preload, &p->held[2], fault) : r;
}

int preload_files_install(PreloadFiles *p, const char *given, Fault *fault) {
        _cleanup_buf_ Buf library = BUF_NULL;
        int r;

        r = install_read(given, LIBRARY, "the gate", &library, fault);
        if (r == 0)
                r = install_folder(p->inside, fault);
        if (r == 0)
                r = install_library(p->library, &library, &p->held[0], fault);
        return r == 0 && p->has_run ? install_run(p, &library, fault) : r;
}

static bool is_file(const char *path) {
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

bool preload_files_are_complete(const PreloadFiles *p) {
        return is_file(p->library) && (!p->has_run || (is_file(p->run_library) && is_file(p->run_preload)));
}

/* ---- the directory ---- */

void preload_files_folder(const PreloadFiles *p, size_t n, char ret[static PRELOAD_FOLDER]) {
        (void) snprintf(ret, PRELOAD_FOLDER, "%s/%zu", p->inside, n);
}

static int explain(const char *path, int r, Fault *fault) {
        return r < 0 ? fault_set(fault, r, "cannot make %s: %s", path, strerror(-r)) : 0;
}

/* Containers run as other users, so the mode does not depend on our umask. */
static int make_directory(const char *path, Fault *fault) {
        _cleanup_close_ int fd = -1;

        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return explain(path, -errno, fault);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOTDIR)
                return explain(path, -EEXIST, fault);
        return fd < 0 || fchmod(fd, 0755) < 0 ? explain(path, -errno, fault) : 0;
}

static int make_file(const char *path, Fault *fault) {
        _cleanup_close_ int fd =
                open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0444);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return explain(path, -errno, fault);
        return S_ISREG(st.st_mode) ? 0 : explain(path, -EEXIST, fault);
}

static int make_card(const char *folder, size_t card, Fault *fault) {
        static const char *const files[] = {"limits", "counters", SLICE_DOORBELL};
        char path[PRELOAD_FOLDER + 64];
        int r;

        (void) snprintf(path, sizeof path, "%s/slice/%zu", folder, card);
        r = make_directory(path, fault);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(files); i++) {
                (void) snprintf(path, sizeof path, "%s/slice/%zu/%s", folder, card, files[i]);
                r = make_file(path, fault);
        }
        return r;
}

int preload_files_make_folder(const PreloadFiles *p, size_t n, Fault *fault) {
        char folder[PRELOAD_FOLDER], path[PRELOAD_FOLDER + 64];
        int r;

        preload_files_folder(p, n, folder);
        r = make_directory(p->inside, fault);
        if (r == 0)
                r = make_directory(folder, fault);
        (void) snprintf(path, sizeof path, "%s/" LIBRARY, folder);
        if (r == 0)
                r = make_file(path, fault);
        (void) snprintf(path, sizeof path, "%s/slice", folder);
        if (r == 0)
                r = make_directory(path, fault);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = make_card(folder, i, fault);
        return r;
}
