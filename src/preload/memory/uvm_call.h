/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One call on a uvm file that the gate holds: its parameters, and how it ends notes. Functions that
 * stand for a system call return what it would return. */

#include "gpu/rm/uvm_ioctl.h"
#include "preload/inject/bytes.h"
#include "preload/inject/usermem.h"
#include "preload/memory/uvm_file.h"

#define UVM_NO_ANSWER 0xA11C0A11u /* no status of the driver */

typedef struct UvmCall {
        Gate *g;
        int fd; /* held */
        uint64_t argument, key;
        uint32_t frees; /* uvm_maps_frees() before the call */
} UvmCall;

/* The driver's call with a copy of the parameters. */
static inline long uvm_call_driver(const UvmCall *u, uint32_t request, void *params) {
        return gate_next_ioctl(u->fd, request, params);
}

/* Copies parameters in pieces: another thread may change the program's memory, so the driver gets a
 * copy. Returns how much is there. */
size_t uvm_call_copy_in(const UvmCall *u, uint8_t *to, size_t n);

/* The driver changes nothing but the status. */
long uvm_call_answer(const UvmCall *u, size_t at, uint32_t status);

/* How many cards a list of this driver has; 0: the driver did not say. */
uint32_t uvm_call_gpus(const UvmCall *u);

/* How much shorter the parameters with such a list are than the structure. */
static inline size_t uvm_call_shorter(uint32_t gpus) {
        return sizeof(UvmMapping) * (size_t) (UVM_GPUS_MAX - gpus);
}

uint8_t uvm_call_card(const UvmCall *u, const uint8_t *uuid); /* UINT8_MAX: none of this container */

/* The mappings of a part on some cards have ended, but not those that came since. */
void uvm_call_end_part(const UvmCall *u, uint64_t base, uint64_t length, uint32_t gpus, uint32_t now);
