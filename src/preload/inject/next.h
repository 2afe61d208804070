/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Passes on the application's ioctl, mmap, munmap and mremap. A program may have another library
 * that interposes them: a sanitizer's runtime, a profiler, an allocator. A library that the program
 * links to comes behind this one in the search order. It is called, as it would be without this
 * library; if there is only libc, the system call is made. mmap and mmap64 are one function here.
 * This library's own calls are never passed to another library. asan.c tells AddressSanitizer that
 * it need not be the first.
 *
 * The other library may call back: through a handle of the C library it gets this library's
 * function for libc's. A thread that is passing on a call makes the system call, so there is no
 * recursion, and the same call is not counted twice (next_is_reentry()).
 *
 * All return what the system call would, a negative errno on failure; errno itself may change. Any
 * thread and any signal handler may call these functions. Before this library and the other one are
 * relocated, the system call is made. Nothing is allocated. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef enum NextName { NEXT_IOCTL = 0, NEXT_MMAP, NEXT_MUNMAP, NEXT_MREMAP, NEXT_NAMES } NextName;

long next_ioctl(int fd, unsigned long request, void *argument);
long next_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
long next_munmap(void *address, size_t length);
long next_mremap(void *address, size_t old, size_t length, int flags, void *to);

/* Whether the thread is passing on just this call, with the first arguments a, b and c. Then the
 * call is counted already, and goes to the kernel. Costs a load and a branch if no other library
 * interposes the names. */
bool next_is_reentry(NextName name, long a, long b, long c);
