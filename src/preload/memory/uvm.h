/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ranges of managed memory. No call of the driver says how much of a card it takes, because pages
 * come and go with faults. So it is counted by the mappings of the uvm file, whatever their
 * protection: by their length, from mmap to munmap.
 *
 * The pages of a range can be on any card that the process has registered with uvm, all of them on
 * one. So the range is charged on each of these cards, and on no other. What is mapped before a
 * card is registered is charged on a guessed card, and the first registration corrects that. */

#include "preload/inject/spin.h"

enum { UVM_MIN = 64, UVM_CARDS = 32 };

typedef struct UvmRange {
        uint64_t start, end;
        uint32_t cards;  /* bits: cards that it is charged on */
        uint32_t serial; /* younger ranges have higher ones */
        bool guessed;
} UvmRange;

typedef struct Uvm {
        Spin lock;
        _Atomic uint32_t n; /* ranges; at 0 a munmap needs no lookup */
        uint32_t size;
        UvmRange *ranges;
        _Atomic uint32_t cards;    /* bits: registered cards */
        uint32_t times[UVM_CARDS]; /* how often each is registered */
        _Atomic uint32_t serial;   /* of the newest range */
} Uvm;

/* Bytes of each card. Only entries of cards whose bit is set are written. */
typedef struct UvmBytes {
        uint32_t cards;
        uint64_t card[UVM_CARDS];
} UvmBytes;

static inline void uvm_bytes_none(UvmBytes *b) {
        b->cards = 0;
}
void uvm_bytes_add(UvmBytes *b, uint32_t cards, uint64_t bytes); /* on each of the cards */
uint64_t uvm_bytes_on(const UvmBytes *b, uint32_t card);

/* Adds a range; ranges below it were taken out before. cards: those that it is charged on; guessed:
 * none is registered. 0; -EAGAIN: other cards are registered by now; -ENOMEM. */
int uvm_add(Uvm *u, uint64_t start, uint64_t end, uint32_t cards, bool guessed);

/* The newest serial, to be read before the kernel removes a mapping: another thread may map the
 * same addresses meanwhile, and its range is younger. */
uint32_t uvm_now(Uvm *u);

/* Takes out one range, or the part of one, within start and end that is not younger than now.
 * Returns false if there is none; the caller repeats until then. */
bool uvm_take(Uvm *u, uint64_t start, uint64_t end, uint32_t now, UvmRange *ret);

/* Adds up the bytes that uvm_take() would take out. */
void uvm_charged(Uvm *u, uint64_t start, uint64_t end, uint32_t now, UvmBytes *ret);

/* Registers a card, which may be registered already. The caller first charges the uvm_lacks() bytes
 * on it. Returns false if that number has changed since; then nothing is done. freed: the bytes
 * that were charged on other cards by a guess. */
uint64_t uvm_lacks(Uvm *u, uint32_t card);
bool uvm_register(Uvm *u, uint32_t card, uint64_t charged, UvmBytes *freed);

/* Ends one registration. Returns the bytes that are no longer charged on the card. */
uint64_t uvm_unregister(Uvm *u, uint32_t card);

void uvm_after_fork(Uvm *u); /* a child inherits none of the mappings */
