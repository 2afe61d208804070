/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* A library that comes before libaliquot.so and makes the system calls itself, as allocators do. It
 * hides the calls of the driver's libraries, unless their own tables lead past it. */

int front_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");
void *front_mmap(void *address, size_t length, int protection, int flags, int fd,
                 off_t offset) __asm__("mmap");
void *front_mmap64(void *address, size_t length, int protection, int flags, int fd,
                   off_t offset) __asm__("mmap64");
int front_munmap(void *address, size_t length) __asm__("munmap");

int front_ioctl(int fd, unsigned long request, ...) {
        void *params;
        va_list more;

        va_start(more, request);
        params = va_arg(more, void *);
        va_end(more);
        return (int) syscall(SYS_ioctl, fd, request, params);
}

void *front_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        return (void *) syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

void *front_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        return front_mmap(address, length, protection, flags, fd, offset);
}

int front_munmap(void *address, size_t length) {
        return (int) syscall(SYS_munmap, address, length);
}
