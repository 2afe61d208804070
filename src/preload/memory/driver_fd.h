/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a descriptor is of: a file of the resource manager (/dev/nvidiactl, /dev/nvidiaN), of uvm,
 * or another file. The limits pages name the files; the driver's major number is known, too. */

#include "preload/memory/gate.h"

typedef enum GateFile { GATE_FILE_OTHER = 0, GATE_FILE_RM, GATE_FILE_UVM } GateFile;

/* The kind of the descriptor's file. While the files of some card are unknown, any device and any
 * regular file is GATE_FILE_RM. */
GateFile gate_file(const Gate *g, int fd);
bool gate_is_driver(const Gate *g, int fd); /* known to be of the resource manager; never a guess */

/* Whether the file is uvm's, for mapping and registration. While the files of some card are
 * unknown, any device but those of the kernel's memory may be. */
bool gate_is_uvm(const Gate *g, int fd);

/* Records the uvm file: it has answered UVM_INITIALIZE with OK, and a machine has only one such
 * file. */
void gate_set_uvm_file(Gate *g, int fd);

/* Replaces *fd by a duplicate of it for the driver, which gate_release_fd() closes. Another thread
 * may close the program's descriptor and open another file under its number before the driver
 * looks. -1 in *fd: there is no such descriptor. Returns false if no descriptor is left. */
bool gate_hold_fd(int *fd);
void gate_release_fd(int fd);
