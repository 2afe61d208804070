/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Managed memory: no call of the driver says how much of a card it may take, because pages come and go with faults. It is counted by
 * what is mapped of the uvm file: its length, from mmap to munmap. Only address space (PROT_NONE) is not counted.
 *
 * A range belongs to one slice, the one with the most room when it was mapped: the driver moves its pages where they are used. */

#include "gate/spin.h"

enum { UVM_MIN = 64 };

typedef struct UvmRange {
        uint64_t start, end;
        uint32_t card;
} UvmRange;

typedef struct Uvm {
        Spin lock;
        _Atomic uint32_t n; /* ranges: 0, and munmap has nothing to do here */
        uint32_t size;
        UvmRange *ranges;
} Uvm;

/* Remembers a range, after what it covers was taken out. 0 or -ENOMEM. */
int uvm_add(Uvm *u, uint64_t start, uint64_t end, uint32_t card);

/* Takes one range, or the part of one, out that lies within start and end. false: there is none. Call it until then. */
bool uvm_take(Uvm *u, uint64_t start, uint64_t end, UvmRange *ret);

void uvm_after_fork(Uvm *u); /* a child has none of the mappings */
