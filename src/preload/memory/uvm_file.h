/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Open uvm files: which one a descriptor is of, and the notes of it (uvm_maps.h). A file is known
 * by an OFD lock of its own. The lock lasts as long as the address space: until the last descriptor
 * and mapping are gone, in any process. */

#include "preload/memory/gate.h"

/* Finds the key of the open file; 0: there are no notes of it. fd: held by the gate
 * (gate_hold_fd()). false: not known, because another open file has a lock there, and /proc does
 * not answer. */
bool uvm_file_key(Gate *g, int fd, uint64_t *ret);

/* Like uvm_file_key(), with a lock if there is none. Of two threads that lock one file, the second
 * in the table gives way. number: the program's descriptor. 0: nothing can be noted, and what is
 * mapped stays charged until the process ends. */
bool uvm_file_make_key(Gate *g, int fd, int number, uint64_t *ret);

/* Locks the file for a row that counts what is mapped there (gate_pin()). Returns false if it
 * cannot be locked; then nothing may be mapped. */
bool uvm_file_pin(Gate *g, int fd, uint64_t key, uint32_t row);

/* Takes out notes, and releases what they held. */
void uvm_file_end(Gate *g, const UvmEnd *what);

/* Releases what files that are closed had mapped. A file whose inode cannot be opened to ask for
 * its lock counts as open. fd: a file of the driver, whose directory has nvidia-uvm, too; or -1. */
void uvm_file_drop_closed(Gate *g, int fd);
