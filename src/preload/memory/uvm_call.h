/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One call on a uvm file that the gate holds: its parameters, and how it ends notes (uvm_maps.h).
 * Functions that stand for a system call return what it would return. */

#include "gpu/rm/uvm_ioctl.h"
#include "preload/inject/bytes.h"
#include "preload/inject/usermem.h"
#include "preload/memory/uvm_file.h"

#define UVM_NO_ANSWER 0xA11C0A11u /* preset of a status: the driver never writes it */

typedef struct UvmCall {
        Gate *g;
        int fd; /* descriptor that the gate holds (gate_hold_fd()) */
        uint64_t argument, key;
        uint32_t frees; /* uvm_maps_frees() before the call */
} UvmCall;

/* Makes the driver's call with a copy of the parameters. */
static inline long uvm_call_driver(const UvmCall *u, uint32_t request, void *params) {
        return gate_next_ioctl(u->fd, request, params);
}

/* Copies parameters in pieces: another thread may change the program's memory, so the driver gets a
 * copy. Returns how many bytes could be read. */
size_t uvm_call_copy_in(const UvmCall *u, uint8_t *to, size_t n);

/* Writes only the status back: the driver changes nothing else. */
long uvm_call_answer(const UvmCall *u, size_t at, uint32_t status);

/* Returns the length of a list of cards in this driver's calls; 0: the driver did not show it. */
uint32_t uvm_call_gpus(const UvmCall *u);

/* Returns by how many bytes the parameters with such a list are shorter than the structure. */
static inline size_t uvm_call_shorter(uint32_t gpus) {
        return sizeof(UvmMapping) * (size_t) (UVM_GPUS_MAX - gpus);
}

/* The card's index; UINT8_MAX: none of this container. */
uint8_t uvm_call_card(const UvmCall *u, const uint8_t *uuid);

/* Ends the notes of mappings of a part on some cards (bits), but not of those that came since
 * `now`. */
void uvm_call_end_part(const UvmCall *u, uint64_t base, uint64_t length, uint32_t gpus, uint32_t now);
