/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where an object that is loaded keeps the addresses of functions of others: the slots that the
 * dynamic linker fills in for it, when it is loaded or at the first call (DT_JMPREL, DT_RELA). As
 * in elf_names.h nothing is believed, written or allocated. */

#include "preload/inject/elf_names.h"

typedef struct ElfSlot {
        uint64_t address;
        unsigned name; /* its number in the list that was asked for */
} ElfSlot;

/* All slots of those n names. false: there are more than max, or the tables cannot be read to their
 * end. */
bool elf_slots(ElfRead read, const ElfObject *o, const char *const names[], unsigned n, ElfSlot *slots,
               unsigned max, unsigned *ret_n);

typedef enum ElfPlace {
        ELF_PLACE_UNKNOWN, /* its headers are not where it is loaded: a program that is loaded where it was linked to */
        ELF_PLACE_OUTSIDE,
        ELF_PLACE_FIXED,  /* code and constants */
        ELF_PLACE_DATA,   /* it may be written to */
        ELF_PLACE_SEALED, /* only until it was relocated (PT_GNU_RELRO) */
} ElfPlace;

enum { ELF_PAGE = 4096 }; /* the smallest there is */

/* What is at an address of the object that is loaded at base. page_size: the kernel's, a power of
 * two, by which the linker has sealed. */
ElfPlace elf_place(ElfRead read, uint64_t base, uint64_t address, uint64_t page_size);
