/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Managed memory: mappings of the uvm file, and the cards it can be on. The functions that stand
 * for a system call return what it would return. */

#include <sys/types.h>

#include "preload/memory/gate.h"

static inline bool gate_failed(long r) {
        return r < 0 && r > -4096;
}

/* Rounds up to whole pages, which the kernel maps. */
static inline uint64_t gate_page_up(uint64_t n) {
        return (n + 4095) & ~UINT64_C(4095);
}

/* Makes an mmap of a uvm file, charged. -ENOMEM, too: a slice that it is charged on has no room. */
long gate_map_managed(Gate *g, void *address, size_t length, int protection, int flags, int fd, off_t offset);

/* Call it after munmap: releases the managed memory of the range. now: uvm_now() before the call;
 * younger mappings stay. */
void gate_unmap_managed(Gate *g, uint64_t start, uint64_t end, uint32_t now);

/* Call it after mremap: `old` bytes at start became `length` bytes at r. Releases what is no longer
 * mapped, and keeps the charge of what has moved. Returns r. -ENOMEM: a card was registered
 * meanwhile, and its slice has no room; the mapping is removed. */
long gate_remap_managed(Gate *g, uint64_t start, uint64_t old, uint64_t r, uint64_t length, uint32_t now);

/* Makes the call UVM_INITIALIZE, with the flag that disables HMM. GATE_NOT_OURS: the parameters
 * cannot be read, and the file is not known to be uvm's. */
long gate_uvm_initialize(Gate *g, int fd, unsigned long request, uint64_t argument);

/* UVM_REGISTER_GPU and UVM_UNREGISTER_GPU. What is mapped already can be on that card from now on.
 * If its slice has no room for that, or the card has no slice here, the status is NO_MEMORY.
 * -EFAULT: the parameters cannot be read. */
long gate_uvm_register(Gate *g, int fd, unsigned long request, uint64_t argument);

/* Returns the card of a slice, by the 16 bytes of its UUID; GATE_NO_CARD: there is no slice of
 * it. */
int gate_card_by_uuid(const Gate *g, const uint8_t *uuid);
