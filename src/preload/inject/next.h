/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whom the application's ioctl, mmap, munmap and mremap go on to. A program may have another
 * library that puts itself before libc's (a sanitizer's runtime, a profiler, an allocator), and
 * where the program links to it, it comes behind the gate in the search order. It is called, as it
 * would be without the gate, and calls whom it likes; where there is none but libc's own the kernel
 * is asked. mmap and mmap64 are one function here. The gate's own calls are never shown to anybody.
 *
 * Who is called may come back: by a handle of the C library it gets the gate's function for libc's.
 * A thread that is in the middle of such a call asks the kernel, so there is no recursion; and the
 * same call once more is not a second one (next_is_reentry()).
 *
 * All return what the system call would, a negative errno on failure; errno itself may be another
 * one by then. Any thread, signal handlers, and before this library or the other one is relocated:
 * then the kernel. Nothing is allocated. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef enum NextName { NEXT_IOCTL = 0, NEXT_MMAP, NEXT_MUNMAP, NEXT_MREMAP, NEXT_NAMES } NextName;

long next_ioctl(int fd, unsigned long request, void *argument);
long next_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
long next_munmap(void *address, size_t length);
long next_mremap(void *address, size_t old, size_t length, int flags, void *to);

/* Is this what the thread was passing on just now, with the first arguments a, b and c: has it been
 * counted, and is it for the kernel? A load and a branch where there is nobody. */
bool next_is_reentry(NextName name, long a, long b, long c);
