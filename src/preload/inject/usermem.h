/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The caller's memory, which may be anything: not there, not readable, not writable. The kernel
 * would answer EFAULT; so do we.
 *
 * What lies in the page of our own stack frame, or between it and the end of the main stack, is
 * there: it costs nothing. What lies between it and a thread's own data is mostly there: a harmless
 * system call tries each page. For the rest the kernel copies (process_vm_readv and _writev on
 * ourselves), which cannot fault; where a sandbox forbids that, it copies through a pipe that lives
 * as long as the copy. Only where that is not to be had either a page is tried by a harmless system
 * call first, and then read: another thread that unmaps it in between makes a fault of it.
 *
 * 0, or -EFAULT: nothing, or a part, was copied. n is at most 4 KiB. */

#include <stddef.h>
#include <stdint.h>

int usermem_read(void *to, uint64_t from, size_t n);
int usermem_write(uint64_t to, const void *from, size_t n);

/* As many of n bytes as there are, in steps of 8. Returns the number; what is missing is zero. */
size_t usermem_read_some(void *to, uint64_t from, size_t n);
