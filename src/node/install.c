/* SPDX-License-Identifier: Apache-2.0 */
#include "node/install.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "node/state_file.h"

enum { FILE_MAX = 16 << 20 };

static int cannot_read(const char *what, const char *path, int r, Fault *fault) {
        return fault_set(fault, r, "cannot read %s %s: %s", what, path, strerror(-r));
}

int install_read(const char *given, const char *name, const char *what, Buf *into, Fault *fault) {
        static const char *const places[] = {"",
                                             "/src",
                                             "/../lib/aliquot",
                                             "/../lib/x86_64-linux-gnu/aliquot",
                                             "/../lib/aarch64-linux-gnu/aliquot",
                                             "/../lib64/aliquot"};
        char own[4000], path[4400];
        ssize_t n;
        int r;

        if (given) {
                r = file_read(given, FILE_MAX, into);
                return r < 0 ? cannot_read(what, given, r, fault) : 0;
        }
        n = readlink("/proc/self/exe", own, sizeof own - 1);
        own[n > 0 ? n : 0] = '\0';
        if (strrchr(own, '/'))
                *strrchr(own, '/') = '\0';
        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                (void) snprintf(path, sizeof path, "%s%s/%s", own, places[i], name);
                r = file_read(path, FILE_MAX, into);
                if (r != -ENOENT)
                        return r < 0 ? cannot_read(what, path, r, fault) : 0;
        }
        return fault_set(fault, -ENOENT, "%s %s is neither beside %s nor in ../lib/aliquot", what, name, own);
}

static bool is_same(const char *path, const Buf *text) {
        _cleanup_buf_ Buf there = BUF_NULL;

        return file_read(path, FILE_MAX, &there) == 0 && str_eq(buf_str(&there), buf_str(text));
}

int install_write(const char *path, const Buf *text, Fault *fault) {
        int r;

        if (is_same(path, text))
                return 0;
        r = state_file_write(path, text, fault);
        if (r == 0 && chmod(path, 0755) < 0)
                r = fault_set(fault, -errno, "cannot let containers read %s: %s", path, strerror(errno));
        return r;
}

int install_folder(const char *path, Fault *fault) {
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return fault_set(fault, -errno, "cannot make %s: %s", path, strerror(errno));
        return 0;
}
