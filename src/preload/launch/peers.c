/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/peers.h"

#include <fcntl.h>

#include "base/sys.h"

static bool path_beside(const SliceUser *s, const char *name, char path[SLICE_PATH]) {
        size_t n = 0, last = 0;

        for (; n < SLICE_PATH && s->path[n]; n++)
                if ((path[n] = s->path[n]) == '/')
                        last = n;
        for (n = last + 1; n < SLICE_PATH; n++)
                if ((path[n] = *name++) == '\0')
                        return true;
        return false;
}

void peers_ring_doorbell(const SliceUser *s) {
        char path[SLICE_PATH], byte = 1;
        long fd;

        if (!path_beside(s, "doorbell", path))
                return;
        fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0);
        if (fd < 0)
                return;
        /* a full FIFO has been rung already */
        (void) sys_call(SYS_write, fd, &byte, 1);
        (void) sys_call(SYS_close, fd); /* the byte stays while the arbiter has the FIFO open */
}

/* A living process holds the lock of its row. */
static bool is_alive(long fd, uint32_t row) {
        struct flock lock = {.l_type = F_WRLCK,
                             .l_whence = SEEK_SET,
                             .l_start = (off_t) (offsetof(SliceCounters, rows) + row * sizeof(SliceRow)),
                             .l_len = 1};

        return sys_call(SYS_fcntl, fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

unsigned peers_count(const SliceUser *s) {
        unsigned n = 1;
        long fd = -1;

        for (uint32_t row = 0; row < SLICE_ROWS; row++) {
                if (row == s->row || atomic_load(&s->counters->rows[row].work.wants) == 0)
                        continue;
                if (fd < 0)
                        fd = sys_call(SYS_openat, AT_FDCWD, s->path,
                                      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
                if (fd < 0 || is_alive(fd, row))
                        n++;
        }
        if (fd >= 0)
                (void) sys_call(SYS_close, fd); /* the descriptor only served to query locks */
        return n;
}
