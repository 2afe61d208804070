/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"

enum { TEXT = 4096 };

#define SEVERAL UINT64_MAX /* inodes: a container may have made itself another node of the same device */

int hold_file(int fd, uint64_t key) {
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};
        int r = (int) sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock);

        if (r == -EBADF) {
                lock.l_type = F_WRLCK; /* it is open for writing only */
                r = (int) sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock);
        }
        if ((r != -EAGAIN && r != -EACCES) || sys_call(SYS_fcntl, fd, F_OFD_GETLK, &lock) < 0)
                return r;
        return lock.l_start == (off_t) key && lock.l_len == 1 ? 0 : r;
}

uint64_t hold_inode(int fd) {
        struct stat st;

        st.st_dev = st.st_ino = 0; /* the kernel sets them; the analyzer cannot know */
        if (fd < 0 || sys_call(SYS_fstat, fd, &st) < 0)
                return 0;
        return (((uint64_t) st.st_dev * UINT64_C(0x9E3779B97F4A7C15)) ^ st.st_ino) >> 1 | 1;
}

void hold_note(SliceRow *row, uint64_t inode) {
        uint64_t old = atomic_load_explicit(&row->inode, memory_order_relaxed);

        if (inode == 0 || (old != 0 && old != inode))
                inode = SEVERAL;
        if (old != inode)
                atomic_store_explicit(&row->inode, inode, memory_order_release);
}

/* ---- all the machine's locks ---- */

/* A key is so random that any number in there that is the same is it. */
static bool find_number(long fd, uint64_t number) {
        uint64_t value = 0;
        char text[TEXT];
        long n;

        while ((n = sys_call(SYS_read, fd, text, sizeof text)) > 0)
                for (long i = 0; i < n; i++) {
                        unsigned digit = (unsigned) text[i] - '0'; /* NOLINT: the kernel has filled it in */

                        if (digit > 9 && value == number)
                                return true;
                        value = digit > 9 ? 0 : value * 10 + digit;
                }
        return n < 0 || value == number;
}

/* Twice, because others lock and unlock meanwhile, and the list has no number by which it is read on. */
static bool is_listed(uint64_t key) {
        bool found = false;

        for (unsigned turn = 0; turn < 2 && !found; turn++) {
                long fd = sys_call(SYS_openat, AT_FDCWD, "/proc/locks", O_RDONLY | O_CLOEXEC, 0);

                if (fd < 0)
                        return true;
                found = find_number(fd, key);
                (void) sys_call(SYS_close, fd); /* only read from */
        }
        return found;
}

/* ---- */

/* By F_GETLK even what this open file has locked itself is in the way. */
bool hold_is_held(const SliceRow *row, int fd) {
        uint64_t key = atomic_load_explicit(&row->key, memory_order_relaxed);
        uint64_t inode = atomic_load_explicit(&row->inode, memory_order_acquire);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};

        if (key == 0 || inode == 0 || (int64_t) key < 0)
                return false;
        if (inode != hold_inode(fd))
                return is_listed(key);
        if (sys_call(SYS_fcntl, fd, F_GETLK, &lock) < 0 || lock.l_type != F_UNLCK)
                return true;
        return hold_inode(fd) != inode && is_listed(key); /* the number is another file's by now */
}
