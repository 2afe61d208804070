/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Leases (fcntl F_SETLEASE) of files that containers have mounted. Whoever has the uid of the
 * file's owner may take one, through a read-only mount, too, and every other open() that it forbids
 * waits until it is given up, /proc/sys/fs/lease-break-time at most (45 s), or, with O_NONBLOCK,
 * fails with EAGAIN. A write lease forbids all, and is had when nobody else has the file open; a
 * read lease forbids opening for writing, and is had when nobody has it open for that (Linux,
 * fs/locks.c: check_conflicting_open).
 *
 * So what others should be able to open at any time is kept open by somebody, and nobody of ours
 * waits in open(). Who looks again now and then, without waiting, never finds a moment, because the
 * tenant is told, gives the lease up, and takes another one. An open() that waits counts as one for
 * writing from its beginning (do_dentry_open), so no read lease can be had any more, and what was
 * had ends in time. Of one for reading that is so in newer kernels. */

#include <sys/types.h>

/* A child that waits in open(), and then has the file open until it is killed, or its parent ends.
 * file: as by O_PATH; it stays the caller's. flags: O_RDONLY or O_RDWR. The caller has one thread.
 * Returns its pid, which is the caller's to reap, or negative errno. */
pid_t file_lease_wait(int file, int flags);

/* Ends it. */
void file_lease_wait_end(pid_t pid);
