/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Leases (fcntl F_SETLEASE) of files that containers have mounted. A process with the uid of the
 * file's owner may take one, even through a read-only mount. Then every open() that conflicts with
 * it waits until it is given up, at most /proc/sys/fs/lease-break-time (45 s), or fails with EAGAIN
 * if it has O_NONBLOCK. A write lease conflicts with every open(), and requires that no other
 * process has the file open. A read lease conflicts with opening for writing, and requires that no
 * process has the file open for writing (Linux, fs/locks.c: check_conflicting_open).
 *
 * So each file that must open at once is kept open by one of our processes, and none of them waits
 * in open(). Trying again now and then does not help: the tenant is notified, gives the lease up
 * and takes another one. An open() for writing that waits counts as open from its begin
 * (do_dentry_open). So no new read lease can be taken, and the existing one ends in time. In newer
 * kernels that is also so of an open() for reading. */

#include <sys/types.h>

/* Starts a child that waits in open(), and then keeps the file open until it is killed or its
 * parent ends. file: a descriptor (O_PATH suffices), which stays the caller's. flags: O_RDONLY or
 * O_RDWR. The caller has one thread. Returns the pid, for file_lease_wait_end(), or negative
 * errno. */
pid_t file_lease_wait(int file, int flags);

/* Kills and reaps the child. */
void file_lease_wait_end(pid_t pid);
