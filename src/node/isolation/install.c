/* SPDX-License-Identifier: Apache-2.0 */
#include "node/isolation/install.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/locate.h"
#include "base/state_file.h"
#include "slicedir/file_lease.h"

enum { FILE_MAX = 16 << 20, FOR_ALL = 0755, TRIES = 3 };

int install_read(const char *given, const char *name, const char *what, Buf *into, Fault *fault) {
        char found[LOCATE_PATH];
        int r;

        if (!given) {
                r = locate_file(name, found, sizeof found, fault);
                if (r < 0)
                        return fault_wrap(fault, r, "%s", what);
                given = found;
        }
        r = file_read(given, FILE_MAX, into);
        return r < 0 ? fault_set(fault, r, "cannot read %s %s: %s", what, given, strerror(-r)) : 0;
}

static bool is_same(int fd, const Buf *text) {
        _cleanup_buf_ Buf there = BUF_NULL;

        return file_read_open(fd, FILE_MAX, &there) == 0 && str_eq(buf_str(&there), buf_str(text));
}

/* Opens without waiting, because a container's lease would delay us. Other containers still mount
 * the old file, so a child waits in open(): it ends the lease and prevents the next one. */
static int open_now(const char *path) {
        _cleanup_close_ int file = -1;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);

        if (fd >= 0 || errno != EAGAIN)
                return fd;
        file = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        if (file >= 0)
                (void) file_lease_wait(file, O_RDONLY); /* the child ends with us */
        return -1;
}

/* A container that starts may lease the new file between its rename and our open(): then it is
 * written again. */
int install_write(const char *path, const Buf *text, int *ret_held, Fault *fault) {
        for (unsigned i = 0; i < TRIES; i++) {
                _cleanup_close_ int fd = open_now(path);
                int r;

                if (fd >= 0 && is_same(fd, text)) {
                        if (fchmod(fd, FOR_ALL) < 0) /* it may have another mode */
                                return fault_set(fault, -errno, "cannot let containers read %s: %s", path,
                                                 strerror(errno));
                        *ret_held = TAKE_FD(fd);
                        return 0;
                }
                r = state_file_write(path, text, FOR_ALL, fault);
                if (r < 0)
                        return r;
        }
        return fault_set(fault, -EBUSY, "%s is another one each time that it is written", path);
}

int install_check(const char *path, int held, Fault *fault) {
        void *page = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, held, 0);

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
