/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads and writes memory at an address from the application, which may be unmapped, unreadable or
 * read-only. Answers -EFAULT then, as the kernel would.
 *
 *   - the page of the current stack frame, and the main stack from it to its end: plain copy
 *   - between stack frame and thread-local data: a harmless system call tries each page first
 *   - elsewhere: process_vm_readv and process_vm_writev on this process, which cannot fault
 *   - if a sandbox forbids these: write and read of a pipe that lives as long as the copy
 *   - if there is no pipe either: a harmless system call tries each page, then a plain copy
 *
 * Only the last way can fault, if another thread unmaps the page in between. All return 0, or
 * -EFAULT: nothing, or a part, was copied. n is at most 4 KiB. */

#include <stddef.h>
#include <stdint.h>

int usermem_read(void *to, uint64_t from, size_t n);
int usermem_write(uint64_t to, const void *from, size_t n);

/* Reads as many of n bytes as can be read: all, those to the end of the first page, or none.
 * Returns the number; the rest of `to` is zero. */
size_t usermem_read_some(void *to, uint64_t from, size_t n);
