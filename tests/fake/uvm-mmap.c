/* SPDX-License-Identifier: Apache-2.0 */

/* A library behind libaliquot.so that maps memory in place of a file that cannot be mapped. The
 * kernel refuses to map the simulated nvidia-uvm (ENODEV), because FUSE serves it directly. */

#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        long p = syscall(SYS_mmap, address, length, protection, flags, fd, offset);

        if (p == -1 && errno == ENODEV)
                p = syscall(SYS_mmap, address, length, protection, flags | MAP_ANONYMOUS, -1, 0L);
        return (void *) p;
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        return mmap(address, length, protection, flags, fd, offset);
}
