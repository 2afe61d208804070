/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static int write_all(int fd, Str text) {
        while (text.len > 0) {
                ssize_t n = write(fd, text.data, text.len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                text = (Str){text.data + n, text.len - (size_t) n};
        }
        return 0;
}

static int write_beside(const char *path, Str text, mode_t mode) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0 || fchmod(fd, mode) < 0)
                return -errno;
        return write_all(fd, text);
}

int state_file_write(const char *path, const Buf *text, mode_t mode, Fault *fault) {
        char beside[PATH_MAX];
        int n = snprintf(beside, sizeof beside, "%s.new", path);
        int r = buf_result(text);

        if (r == 0 && (n < 0 || n >= (int) sizeof beside))
                r = -ENAMETOOLONG;
        if (r == 0)
                r = write_beside(beside, buf_str(text), mode);
        if (r == 0 && rename(beside, path) < 0)
                r = -errno;
        if (r == 0)
                return 0;
        if (n > 0 && n < (int) sizeof beside)
                (void) unlink(beside); /* a partial text is of no use and takes space */
        return fault_set(fault, r, "cannot write %s: %s", path, strerror(-r));
}
