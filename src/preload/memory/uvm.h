/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Managed memory: no call of the driver says how much of a card it may take, because pages come and
 * go with faults. It is counted by what is mapped of the uvm file, with whatever protection: its
 * length, from mmap to munmap.
 *
 * Its pages can be on any card that the process has registered with uvm, all of them on one, so a
 * range is charged on each of those, and on no other. What is mapped before any card is registered
 * is charged where somebody guessed; the first registration corrects that. */

#include "preload/inject/spin.h"

enum { UVM_MIN = 64, UVM_CARDS = 32 };

typedef struct UvmRange {
        uint64_t start, end;
        uint32_t cards;  /* a bit for each */
        uint32_t serial; /* when it came */
        bool guessed;
} UvmRange;

typedef struct Uvm {
        Spin lock;
        _Atomic uint32_t n; /* ranges: 0, and munmap has nothing to do here */
        uint32_t size;
        UvmRange *ranges;
        _Atomic uint32_t cards; /* registered */
        uint32_t times[UVM_CARDS];
        _Atomic uint32_t serial; /* of the newest range */
} Uvm;

/* What changes for a card, in bytes. Of cards whose bit is not set nothing was written. */
typedef struct UvmBytes {
        uint32_t cards;
        uint64_t card[UVM_CARDS];
} UvmBytes;

static inline void uvm_bytes_none(UvmBytes *b) {
        b->cards = 0;
}
void uvm_bytes_add(UvmBytes *b, uint32_t cards, uint64_t bytes); /* on each of the cards */
uint64_t uvm_bytes_on(const UvmBytes *b, uint32_t card);

/* Remembers a range, after what it covers was taken out. cards: what it is charged on; guessed:
 * none is registered. 0; -EAGAIN: other cards are registered by now; -ENOMEM. */
int uvm_add(Uvm *u, uint64_t start, uint64_t end, uint32_t cards, bool guessed);

/* Now, to be asked before the kernel takes a mapping away: what another thread maps at the same
 * addresses meanwhile came later. */
uint32_t uvm_now(Uvm *u);

/* Takes one range, or the part of one, out that lies within start and end and had come by then.
 * false: there is none. Call it until then. */
bool uvm_take(Uvm *u, uint64_t start, uint64_t end, uint32_t now, UvmRange *ret);

/* What is charged within start and end of what had come by then: what uvm_take() would give. */
void uvm_charged(Uvm *u, uint64_t start, uint64_t end, uint32_t now, UvmBytes *ret);

/* A card is registered, once more or for the first time. uvm_lacks() tells what has to be charged
 * on it for that; with another number by now uvm_register() does nothing and says false. freed:
 * what was charged by a guess on other cards. */
uint64_t uvm_lacks(Uvm *u, uint32_t card);
bool uvm_register(Uvm *u, uint32_t card, uint64_t charged, UvmBytes *freed);

/* And once less. Returns the bytes that are charged on it no longer. */
uint64_t uvm_unregister(Uvm *u, uint32_t card);

void uvm_after_fork(Uvm *u); /* a child has none of the mappings */
