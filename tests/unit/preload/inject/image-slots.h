/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The object of image.h, with relocation tables and program headers. */

#include "image.h"

#if defined(__x86_64__)
enum { IMAGE_JUMP = R_X86_64_JUMP_SLOT, IMAGE_DATA = R_X86_64_64, IMAGE_RELATIVE = R_X86_64_RELATIVE };
#else
enum { IMAGE_JUMP = R_AARCH64_JUMP_SLOT, IMAGE_DATA = R_AARCH64_ABS64, IMAGE_RELATIVE = R_AARCH64_RELATIVE };
#endif

static inline void image_relocation(unsigned i, uint64_t at, uint32_t symbol, uint32_t kind, int64_t more) {
        Elf64_Rela r = {.r_offset = at, .r_info = ELF64_R_INFO((uint64_t) symbol, kind), .r_addend = more};

        image_put(IMAGE_SLOTS + i * sizeof r, &r, sizeof r);
}

/* "missing" at 0x800 in the first table, and at 0x808 in the second. That one also has an entry for
 * another name and entries that are not slots. */
static inline void image_slots(void) {
        image_gnu_hash();
        image_dynamic(5, DT_JMPREL, IMAGE_SLOTS);
        image_dynamic(6, DT_PLTRELSZ, sizeof(Elf64_Rela));
        image_dynamic(7, DT_RELA, IMAGE_BASE + IMAGE_SLOTS + sizeof(Elf64_Rela));
        image_dynamic(8, DT_RELASZ, 4 * sizeof(Elf64_Rela));
        image_relocation(0, 0x800, 3, IMAGE_JUMP, 0);
        image_relocation(1, 0x820, 0, IMAGE_RELATIVE, 0x10);
        image_relocation(2, 0x810, 1, IMAGE_JUMP, 0);
        image_relocation(3, 0x818, 3, IMAGE_DATA, 8);
        image_relocation(4, 0x808, 3, IMAGE_DATA, 0);
}

static inline void image_header(unsigned i, uint32_t type, uint32_t flags, uint64_t at, uint64_t size) {
        Elf64_Phdr p = {.p_type = type, .p_flags = flags, .p_vaddr = at, .p_memsz = size};

        image_put(IMAGE_HEADERS + i * sizeof p, &p, sizeof p);
}

/* Two pages of code, and three of data behind them, of which one and a half are PT_GNU_RELRO. */
static inline void image_headers(void) {
        Elf64_Ehdr e = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                        .e_phoff = IMAGE_HEADERS,
                        .e_phentsize = sizeof(Elf64_Phdr),
                        .e_phnum = 3};

        memmove(image + IMAGE_MOVED, image, IMAGE_SYMBOLS);
        image_put(0, &e, sizeof e);
        image_header(0, PT_LOAD, PF_R | PF_X, 0, 0x2000);
        image_header(1, PT_LOAD, PF_R | PF_W, 0x2000, 0x3000);
        image_header(2, PT_GNU_RELRO, PF_R, 0x2000, 0x1800);
}
