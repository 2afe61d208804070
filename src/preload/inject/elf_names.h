/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds names in an object that the dynamic linker has loaded, by its dynamic section: DT_GNU_HASH,
 * or DT_HASH where that is all there is. Nothing is believed: every byte comes through a reader
 * that may say no, and every loop has an end. Nothing is written, nothing allocated. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies n bytes of the process from an address. false: they cannot be read. */
typedef bool (*ElfRead)(void *to, uint64_t from, size_t n);

typedef struct ElfObject { /* addresses; 0: there is none */
        uint64_t base, symbols, strings, strings_size, hash, gnu_hash;
        uint64_t jumps, jumps_size, relocations, relocations_size; /* what the linker writes: elf_slots.h */
        uint64_t soname;                                           /* offset in strings; 0: has none */
} ElfObject;

/* The object that is loaded at base, with its dynamic section at an address. false: it has no table
 * of names that could be read; ret is then of no use. */
bool elf_open(ElfRead read, uint64_t base, uint64_t dynamic, ElfObject *ret);

/* The address of a function that the object defines; 0: it does not, or it is one that is chosen at
 * run time. Of a name with several versions any: those that are asked for here are the same
 * function in all of them. */
uint64_t elf_find(ElfRead read, const ElfObject *o, const char *name);

/* Whether it calls itself so: DT_SONAME. */
bool elf_is(ElfRead read, const ElfObject *o, const char *soname);

/* Which of n texts, of less than 64 bytes, stands at an offset in its strings; n: none of them, or
 * nothing that could be read. */
unsigned elf_text_among(ElfRead read, const ElfObject *o, uint64_t offset, const char *const texts[],
                        unsigned n);
