/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of the card may outlive the process that it is charged to: it belongs to an open file of the driver, which an exec may inherit,
 * a child of fork have, or somebody get by a socket. So the row has a key, and its owner locks the byte of that number in each such file
 * (OFD locks: they are the open file's, and last until its last descriptor, wherever that is, is closed). Who finds a row whose processes
 * have all ended looks for that lock, and leaves the row alone as long as it is there. */

#include "slice/page.h"

/* One of 2^61, odd. Without random numbers of the kernel's (getrandom, /dev/urandom) the processor's, and the time, the place and who (key.c). */
uint64_t hold_new_key(void);

/* Locks the byte, for reading, as any number of files may; where the file is open for writing only, for writing, as one may: then of those of
 * one inode the first has it, and that is enough. 0; -EAGAIN or -EACCES: somebody else has locked more than the byte; -EBADF, too: the
 * file is open for neither (access mode 3); or what fcntl() says. */
int hold_file(int fd, uint64_t key);

/* Which inode a file is of; 0: it cannot be told. */
uint64_t hold_inode(int fd);

/* Notes in the row that a file of this inode has the lock, before it has. */
void hold_note(SliceRow *row, uint64_t inode);

/* Is a file still open that the owner of the row has locked? fd: any file of the driver, -1: none is at hand, and the kernel's list of all
 * locks is read. true, too, where that cannot be had. */
bool hold_is_held(const SliceRow *row, int fd);
