/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/install.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/state_file.h"
#include "beside/find.h"

enum { FILE_MAX = 16 << 20, FOR_ALL = 0755 };

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
        if (!is_same(path, text))
                return state_file_write(path, text, FOR_ALL, fault);
        if (chmod(path, FOR_ALL) < 0) /* whoever wrote it may have left it otherwise */
                return fault_set(fault, -errno, "cannot let containers read %s: %s", path, strerror(errno));
        return 0;
}

int install_check(const char *path, Fault *fault) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        void *page = fd < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

        if (page == MAP_FAILED)
                return fault_set(fault, -errno, "containers cannot load %s: %s%s", path, strerror(errno),
                                 errno == EPERM ? " (is its file system mounted noexec?)" : "");
        (void) munmap(page, 1);
        return 0;
}

int install_folder(const char *path, Fault *fault) {
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return fault_set(fault, -errno, "cannot make %s: %s", path, strerror(errno));
        return 0;
}
