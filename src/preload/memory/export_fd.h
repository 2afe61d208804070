/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The charges of what this process has exported to open files (export_table.h): their holders, and
 * when they end. */

#include "preload/memory/gate.h"

static inline RmObject export_fd_source(const ExportedObject *x) {
        return (RmObject){.units = x->units, .card = x->card, .row = x->row};
}

/* Moves the bytes of x to the files' row, where they stay while any file holds them. They move
 * before that is noted, so that no thread calls the driver while they are still in the old row. A
 * thread that was second moves its bytes back. false: no room or no lock; nothing has changed. */
bool export_fd_move_to_file_row(Gate *g, ExportedObject *x);

void export_fd_drop(Gate *g, const ExportedObject *x); /* ends a file as a holder */
/* Drops the exports of a call that the driver refused. */
void export_fd_drop_call(Gate *g, uint64_t call);

/* Drops the exports to files that are no longer open. fd: a file of the same inode, held by the
 * gate (gate_hold_fd()), through which the locks are read. */
void export_fd_drop_closed(Gate *g, int fd);

/* Drops what was at n indices of the file before that sequence number. What came later may still be
 * there. */
void export_fd_drop_replaced(Gate *g, int fd, uint32_t first, uint32_t n, uint64_t sequence);

/* Returns the key of the lock that marks the file as exported to by this process; a lock is made if
 * there is none. 0 in *ret: the file cannot be locked, because another lock covers the byte, or
 * because it is open for neither reading nor writing. false: another error, as when its locks
 * cannot be read. */
bool export_fd_key(Gate *g, int fd, uint64_t *ret);
