/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mappings of the uvm file, which are managed memory, and which cards it can be on. All return what
 * the system call would. */

#include <sys/types.h>

#include "preload/memory/gate.h"

static inline bool gate_failed(long r) {
        return r < 0 && r > -4096;
}

/* -ENOMEM, too, when one of the slices that it is charged on has no room. */
long gate_map_managed(Gate *g, void *address, size_t length, int protection, int flags, int fd, off_t offset);

/* Whatever of a range was managed memory before `now`, as uvm_now() said it, no longer is: after
 * the kernel has said so. */
void gate_unmap_managed(Gate *g, uint64_t start, uint64_t end, uint32_t now);

/* The end of a mapping: the kernel takes whole pages. */
static inline uint64_t gate_page_up(uint64_t n) {
        return (n + 4095) & ~UINT64_C(4095);
}

/* UVM_INITIALIZE, which is made to be one without HMM. GATE_NOT_OURS: the parameters cannot be
 * read, and the file is not known as uvm's. */
long gate_initialize(Gate *g, int fd, unsigned long request, uint64_t argument);

/* What mremap has done: `old` bytes at start became `length` bytes at r. What is no longer there is given back, what has moved stays charged.
 * -ENOMEM: a card was registered meanwhile, and has no room for it; then it is unmapped. Otherwise r. */
long gate_remap_managed(Gate *g, uint64_t start, uint64_t old, uint64_t r, uint64_t length, uint32_t now);

/* UVM_REGISTER_GPU and UVM_UNREGISTER_GPU. What is mapped already can be on that card from now on:
 * without room for it there the status is NO_MEMORY, and so it is for a card that has no slice
 * here. GATE_NOT_OURS: the parameters cannot be read. */
long gate_register(Gate *g, int fd, unsigned long request, uint64_t argument);
