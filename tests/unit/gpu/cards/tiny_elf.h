/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The smallest shared library: a header, two segments, a dynamic section, and a string table with a
 * SONAME. */

#include <elf.h>
#include <stddef.h>
#include <string.h>

#if defined __aarch64__
enum { TINY_MACHINE = EM_AARCH64 };
#else
enum { TINY_MACHINE = EM_X86_64 };
#endif

/* where the file begins in memory, so that addresses are no offsets */
enum { TINY_ADDRESS = 0x10000 };

typedef struct TinyElf {
        Elf64_Ehdr header;
        Elf64_Phdr load, dynamic;
        Elf64_Dyn strtab, strsz, soname, end;
        char strings[64]; /* a NUL, then the name */
} TinyElf;

static inline TinyElf tiny_elf(const char *soname) {
        TinyElf e = {.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                                .e_type = ET_DYN,
                                .e_machine = TINY_MACHINE,
                                .e_phoff = offsetof(TinyElf, load),
                                .e_phentsize = sizeof(Elf64_Phdr),
                                .e_phnum = 2},
                     .load = {.p_type = PT_LOAD, .p_vaddr = TINY_ADDRESS, .p_filesz = sizeof(TinyElf)},
                     .dynamic = {.p_type = PT_DYNAMIC,
                                 .p_offset = offsetof(TinyElf, strtab),
                                 .p_filesz = 4 * sizeof(Elf64_Dyn)},
                     .strtab = {DT_STRTAB, {TINY_ADDRESS + offsetof(TinyElf, strings)}},
                     .strsz = {DT_STRSZ, {sizeof e.strings}},
                     .soname = {DT_SONAME, {1}}};

        strncpy(e.strings + 1, soname, sizeof e.strings - 2);
        return e;
}
