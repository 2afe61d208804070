/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The slots in which a loaded object keeps the addresses of functions of other objects. The dynamic
 * linker fills them in when the object is loaded, or at the first call (DT_JMPREL, DT_RELA). As in
 * elf.h, nothing is trusted, written or allocated. */

#include "preload/inject/elf.h"

typedef struct ElfSlot {
        uint64_t address;
        unsigned name; /* index in the list of names */
} ElfSlot;

/* Finds the slots of n names. Returns false if there are more than max, or the tables cannot be
 * read to the end. */
bool elf_slots(ElfRead read, const ElfObject *o, const char *const names[], unsigned n, ElfSlot *slots,
               unsigned max, unsigned *ret_n);
