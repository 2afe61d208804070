/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls of the uvm file about memory objects: uvm maps them below ranges of addresses, and holds a
 * duplicate of each (uvm_map_external.c, uvm_va_range_device_p2p.c of the driver). The functions
 * that stand for a system call return what it would return. */

#include <sys/types.h>

#include "preload/memory/gate.h"

/* Whether it is one of these calls. UVM_REGISTER_GPU and UVM_UNREGISTER_GPU are in managed.h. */
bool uvm_external_follows(uint32_t request);

/* Makes one of these calls on a uvm file. -EFAULT: its parameters cannot be read. -EBADF: the
 * descriptor is not uvm's any more. -EINVAL: the length of the driver's list of cards is not known.
 * -EPERM: UVM_FREE by another process than the first that used the file. A mapping that cannot be
 * counted has the status NO_MEMORY. Without a free descriptor: -ENOMEM, or GATE_NOT_OURS for a call
 * that only removes. */
long uvm_external_call(Gate *g, int fd, uint32_t request, uint64_t argument);

/* Makes an mmap of a uvm file at the addresses of a semaphore pool or of device P2P, which are no
 * managed memory. GATE_NOT_OURS: the addresses are of neither. */
long uvm_external_mmap(Gate *g, void *address, size_t length, int protection, int flags, int fd,
                       off_t offset);
