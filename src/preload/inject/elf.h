/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds functions and segments of an object that the dynamic linker has loaded: by its dynamic
 * section (DT_GNU_HASH, or DT_HASH if that is all) and its program headers. Nothing is trusted:
 * every byte comes through a reader that may fail, and every loop is bounded. Nothing is written or
 * allocated. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies n bytes of the process from an address. Returns false if they cannot be read. */
typedef bool (*ElfRead)(void *to, uint64_t from, size_t n);

typedef struct ElfObject { /* addresses; 0: there is none */
        uint64_t base, symbols, strings, strings_size, hash, gnu_hash;
        uint64_t jumps, jumps_size, relocations, relocations_size; /* what the linker writes: elf_slots.h */
        uint64_t soname;                                           /* offset in strings; 0: it has none */
} ElfObject;

/* Opens the object at base, with its dynamic section at an address. Returns false if it has no
 * readable symbol, string and hash tables; ret is not valid then. */
bool elf_open(ElfRead read, uint64_t base, uint64_t dynamic, ElfObject *ret);

/* The address of a function that the object defines; 0: it does not define it, or chooses it at run
 * time (IFUNC). Of several versions it returns any: the functions that are asked for here are the
 * same in all versions. */
uint64_t elf_find(ElfRead read, const ElfObject *o, const char *name);

/* Whether `soname` is the object's DT_SONAME. */
bool elf_is(ElfRead read, const ElfObject *o, const char *soname);

/* Returns which of n texts, each shorter than 64 bytes, is at an offset in the object's strings. n:
 * none of them, or it cannot be read. */
unsigned elf_text_among(ElfRead read, const ElfObject *o, uint64_t offset, const char *const texts[],
                        unsigned n);

typedef enum ElfSegment {
        ELF_SEGMENT_UNKNOWN,   /* no headers at the base: the program is loaded where it was linked to */
        ELF_SEGMENT_NONE,      /* the address is in no segment of the object */
        ELF_SEGMENT_READ_ONLY, /* code and constants */
        ELF_SEGMENT_WRITABLE,
        ELF_SEGMENT_RELRO, /* read-only after relocation (PT_GNU_RELRO) */
} ElfSegment;

enum { ELF_PAGE = 4096 }; /* the smallest page of any kernel */

/* The kind of segment at an address, of the object that is loaded at base. page_size: a power of
 * two, by which the linker has protected PT_GNU_RELRO. */
ElfSegment elf_segment_at(ElfRead read, uint64_t base, uint64_t address, uint64_t page_size);
