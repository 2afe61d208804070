/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, size_t limit, Buf *into) {
        size_t total = 0;

        for (;;) {
                ssize_t n;

                if (!buf_reserve(into, 64 * 1024))
                        return -ENOMEM;
                n = read(fd, into->data + into->len, 64 * 1024);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return 0;
                total += (size_t) n;
                if (total > limit)
                        return -EFBIG;
                into->len += (size_t) n;
                into->data[into->len] = '\0';
        }
}

int file_read_open(int fd, size_t limit, Buf *into) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISREG(st.st_mode) && (uint64_t) st.st_size > limit)
                return -EFBIG;
        return read_all(fd, limit, into);
}

int file_read(const char *path, size_t limit, Buf *into) {
        _cleanup_close_ int fd = -1;

        if (strcmp(path, "-") == 0)
                return read_all(STDIN_FILENO, limit, into);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? -errno : file_read_open(fd, limit, into);
}

int file_hold_standard(void) {
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
                int r;

                if (fcntl(fd, F_GETFD) >= 0)
                        continue;
                /* opens the lowest free descriptor */
                r = open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_NOCTTY);
                if (r < 0)
                        return -errno;
        }
        return 0;
}

void file_raise_limit(unsigned files) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= files)
                return;
        limit.rlim_cur = limit.rlim_max < files ? limit.rlim_max : files;
        (void) setrlimit(RLIMIT_NOFILE, &limit); /* within the hard limit: never refused */
}

int file_check_locks(const char *path) {
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
        _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);

        if (fd < 0)
                return errno == EINVAL || errno == ENOLCK ? -EIO : -errno;
        if (fcntl(fd, F_OFD_SETLK, &lock) == 0 || errno == EAGAIN || errno == EACCES)
                return 0;
        return -errno;
}
