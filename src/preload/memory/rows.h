/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rows of the slice page that this process has of each card (GateRow in gate.h), and the locks
 * on the driver's files that keep them. When a process has ended, the locks show which of its
 * memory is still there (slice/pin.h).
 *
 * Order: open a row, pin the files, reserve bytes, call the driver. No descriptor stays open, and
 * nothing is locked during a call of the driver. Any thread and any signal handler may call these
 * functions. */

#include "preload/memory/gate.h"

/* Returns a row of a usable card; the process's own row if that one is not open. */
SliceUser *gate_slice(Gate *g, int card, GateRow row);

/* Takes the process's own row of a usable card if it has none yet. Before bytes are reserved in any
 * row. Returns false if the page has no free row, which is counted and reported, or its counters
 * cannot be opened. The next call tries again. */
bool gate_need_row(Gate *g, int card, int fd);

/* Opens a further row. Returns true if the row is open, and stays open; false if the page has no
 * free row, its counters cannot be opened, or another thread is opening the row. */
bool gate_open_row(Gate *g, int card, GateRow row, int fd);

/* Records in a row that was just opened the inodes of its files. */
void gate_note_files(Gate *g, GateCard *card, GateRow row);

/* Call it in a child, or after a change of the process: closes the rows, which are the parent's.
 * by_pid: the process may share the parent's memory, so the pages stay mapped. */
void gate_rows_after_fork(Gate *g, bool by_pid);

/* Locks the file before a client on it, or the file itself, gets memory that may outlive the
 * process: the row counts it until the file is closed. Returns false if the file cannot be locked;
 * then no memory is allocated. If a foreign lock covers the byte, the answer is true. What the row
 * counts then stays until the process and its children have ended or called exec. */
bool gate_pin(Gate *g, int fd, GateRow row);

/* Like gate_pin(), for a new client. *ret_row: the row that will count its memory. */
bool gate_pin_client(Gate *g, int fd, uint8_t *ret_row);

/* Like gate_pin(), for a client with a file that may be pinned already. gate_pin_parent() counts in
 * parent->row, and changes it to the process's own row if the shared row cannot be opened. */
bool gate_pin_row(Gate *g, int fd, const RmParent *parent, GateRow row);
bool gate_pin_parent(Gate *g, int card, int fd, RmParent *parent);

/* Like gate_pin(), for GATE_ROW_EXPORTS. false: the file is not locked exactly, or some file of the
 * own row is not, and GATE_ROW_EXPORTS should count nothing for this file. */
bool gate_pin_export(Gate *g, int fd);

/* Releases freed bytes in the rows that count them. */
void gate_release_bytes(Gate *g, const FreedBytes *bytes);

/* Ends one holder of a charge. source: its row, card and units. */
void gate_drop_charge(Gate *g, uint32_t charge, const RmObject *source);
