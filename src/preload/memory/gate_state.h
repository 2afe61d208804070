/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes the state of the gate in this process, and returns it. */

#include "preload/memory/gate.h"

/* Returns the gate. NULL: nothing is isolated here (discover.h), and every call is forwarded for
 * the life of the process. A gate without its slices, for lack of descriptors or memory, refuses
 * allocations, and the next call tries to open them again. */
Gate *gate_get(void);
Gate *gate_get_for(int fd); /* like gate_get(), for a call on that file */
/* Like gate_get_for(); NULL, too: the file is not known to be the driver's. */
Gate *gate_get_for_driver(int fd);

/* Like gate_get(), for a call that maps or unmaps memory. NULL, too: fd (-1: no file) is not uvm's,
 * and this process has not called the driver yet. A child of fork() has none of its parent's
 * managed memory, so it needs no rows for other mappings. */
Gate *gate_get_for_mapping(int fd);
