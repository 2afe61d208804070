/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rows of the slice page that this process has of a card (gate.h, GateRow), and the locks on
 * the driver's files by which it is seen, when it has ended, what of them is still there
 * (slice/pin.h).
 *
 * Order: a row is opened, its files are pinned, bytes are reserved in it, the driver is asked. No
 * descriptor stays open, and nothing is locked while the driver is called. All functions may be
 * called by any thread and in signal handlers. */

#include "preload/memory/gate.h"

SliceUser *gate_slice(Gate *g, int card,
                      GateRow row); /* of a good card; its own row where that one is not open */

/* true: it is open, and stays so. false: the page has none left, its counters cannot be opened, or
 * another thread is about to. */
bool gate_open_row(Gate *g, int card, GateRow row, int fd);
void gate_begin_row(Gate *g, GateCard *card,
                    GateRow row); /* what is known of its files is said in one that was just opened */

/* In a child, or whoever else begins anew: the parent's are not his. by_pid: he may share the
 * parent's memory. */
void gate_rows_after_fork(Gate *g, bool by_pid);

/* Before memory comes to a client of this file, or to the file itself, that may outlive the
 * process: what the row counts stays so until the file is closed. false: it cannot be locked, and
 * there is no memory. Where that is because somebody else has locked the byte with many others,
 * there is, all the same: what the row counts stays so until the process ends, or calls exec, and
 * its children do. */
bool gate_pin(Gate *g, int fd, GateRow row);

/* The same for a new client, and which row what it will have is counted in. */
bool gate_pin_client(Gate *g, int fd, uint8_t *ret_row);

/* The same for a client that may have been pinned when it was made. In the second form seat->row is
 * the one to be counted in, and becomes its own row where the shared one cannot be had. */
bool gate_pin_row(Gate *g, int fd, const ObjectSeat *seat, GateRow row);
bool gate_pin_seat(Gate *g, int card, int fd, ObjectSeat *seat);

/* For GATE_ROW_EXPORTS, which the files of its own row are pinned for as well. false: not exactly,
 * or some of those are not, and nothing should be counted there for it. */
bool gate_pin_export(Gate *g, int fd);
