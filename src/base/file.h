/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"

/* Appends the whole file, or standard input for "-", to *into. Files over `limit` bytes are refused
 * before they are read. Returns 0, -EFBIG over the limit, -ENOMEM, or the errno of open() or
 * read(). */
int file_read(const char *path, size_t limit, Buf *into);

/* The same of what is open already, from where it stands. */
int file_read_open(int fd, size_t limit, Buf *into);

/* Takes the descriptors 0 to 2 where the parent left them closed. Otherwise the first sockets of a
 * program get these numbers, and what it prints goes to a peer. They are open the wrong way around,
 * so that it fails to read and write there as on closed ones. For main(), first of all. 0 or
 * negative errno. */
int file_hold_standard(void);
