/* SPDX-License-Identifier: Apache-2.0 */
#include "node/install.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "beside/find.h"
#include "node/state_file.h"

enum { FILE_MAX = 16 << 20 };

int install_read(const char *given, const char *name, const char *what, Buf *into, Fault *fault) {
        char found[BESIDE_PATH];
        int r;

        if (!given) {
                r = beside_find(name, found, sizeof found, fault);
                if (r < 0)
                        return fault_wrap(fault, r, "%s", what);
                given = found;
        }
        r = file_read(given, FILE_MAX, into);
        return r < 0 ? fault_set(fault, r, "cannot read %s %s: %s", what, given, strerror(-r)) : 0;
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
