/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"

/* Appends the whole file, or standard input for "-", to *into. Regular files over `limit` bytes are
 * refused before they are read, others once more was read. Returns 0, -EFBIG over the limit,
 * -ENOMEM, or the errno of open() or read(). */
int file_read(const char *path, size_t limit, Buf *into);

/* The same for an open descriptor, from its current offset. */
int file_read_open(int fd, size_t limit, Buf *into);

/* Opens the descriptors 0 to 2 where the parent left them closed. Otherwise the first sockets of a
 * program get these numbers, and its output goes to a peer. Standard input is opened for writing
 * and the others for reading, so that I/O fails as on closed descriptors. Call it first in main().
 * Returns 0 or negative errno. */
int file_hold_standard(void);

/* Raises the soft limit of open files to this number, or to the hard limit where that is lower. A
 * soft limit that is higher already stays. Services get 1,024 from systemd. */
void file_raise_limit(unsigned files);

/* Whether the kernel gives locks of open files (fcntl, F_OFD_SETLK) on this file. Tries it on byte
 * 0, which is no key of the preload library (slice/pin.h); the lock ends with the call. 0: it does;
 * -ENOLCK, -EINVAL: it does not; other negative errno: it could not be tried, as where open()
 * fails. */
int file_check_locks(const char *path);
