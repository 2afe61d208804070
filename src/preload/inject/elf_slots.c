/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/inject/elf_slots.h"

#include <elf.h>

enum {
        ENTRIES = 32,        /* read at once */
        TABLE_MAX = 1 << 20, /* entries; large libraries have some 100,000 */
        HEADERS_MAX = 64,    /* real ones have a dozen */
#if defined(__x86_64__)
        KIND_JUMP = R_X86_64_JUMP_SLOT, /* the first call may fill it in */
        KIND_ADDRESS = R_X86_64_GLOB_DAT,
        KIND_DATA = R_X86_64_64, /* in a table of the object's own */
#elif defined(__aarch64__)
        KIND_JUMP = R_AARCH64_JUMP_SLOT,
        KIND_ADDRESS = R_AARCH64_GLOB_DAT,
        KIND_DATA = R_AARCH64_ABS64,
#endif
};

typedef struct Wanted {
        const char *const *names;
        unsigned n, max;
        ElfSlot *slots;
        unsigned found;
} Wanted;

/* ---- slots ---- */

static bool is_slot(const Elf64_Rela *r) {
        uint64_t kind = ELF64_R_TYPE(r->r_info);

        return kind == KIND_JUMP || kind == KIND_ADDRESS || (kind == KIND_DATA && r->r_addend == 0);
}

/* false: no room, or a symbol that is not there. */
static bool note(ElfRead read, const ElfObject *o, const Elf64_Rela *r, Wanted *w) {
        uint64_t symbol = ELF64_R_SYM(r->r_info);
        Elf64_Sym s;
        unsigned i;

        if (!is_slot(r) || symbol == 0)
                return true;
        if (!read(&s, o->symbols + symbol * sizeof s, sizeof s))
                return false;
        i = elf_text_among(read, o, s.st_name, w->names, w->n);
        if (i == w->n)
                return true;
        if (w->found == w->max)
                return false;
        w->slots[w->found++] = (ElfSlot){.address = o->base + r->r_offset, .name = i};
        return true;
}

static bool walk(ElfRead read, const ElfObject *o, uint64_t table, uint64_t size, Wanted *w) {
        uint64_t n = size / sizeof(Elf64_Rela);
        Elf64_Rela entries[ENTRIES];

        if (table == 0 || n == 0)
                return true;
        if (n > TABLE_MAX)
                return false;
        for (uint64_t at = 0, some; at < n; at += some) {
                some = n - at < ENTRIES ? n - at : ENTRIES;
                if (!read(entries, table + at * sizeof *entries, some * sizeof *entries))
                        return false;
                for (uint64_t i = 0; i < some; i++)
                        if (!note(read, o, &entries[i], w))
                                return false;
        }
        return true;
}

bool elf_slots(ElfRead read, const ElfObject *o, const char *const names[], unsigned n, ElfSlot *slots,
               unsigned max, unsigned *ret_n) {
        Wanted w = {.names = names, .n = n, .max = max, .slots = slots};

        if (!walk(read, o, o->jumps, o->jumps_size, &w) ||
            !walk(read, o, o->relocations, o->relocations_size, &w))
                return false;
        *ret_n = w.found;
        return true;
}

/* ---- places ---- */

static bool is_header(const Elf64_Ehdr *e) {
        return e->e_ident[EI_MAG0] == ELFMAG0 && e->e_ident[EI_MAG1] == ELFMAG1 &&
               e->e_ident[EI_MAG2] == ELFMAG2 && e->e_ident[EI_MAG3] == ELFMAG3 &&
               e->e_ident[EI_CLASS] == ELFCLASS64 && e->e_phentsize == sizeof(Elf64_Phdr) &&
               e->e_phnum <= HEADERS_MAX;
}

/* The linker seals whole pages, from the one in which it begins to the last one that it fills. */
static bool is_sealed(const Elf64_Phdr *p, uint64_t offset, uint64_t page_size) {
        uint64_t pages = ~(page_size - 1);
        uint64_t page = offset & pages, first = p->p_vaddr & pages, end = (p->p_vaddr + p->p_memsz) & pages;

        return page >= first && page < end;
}

ElfPlace elf_place(ElfRead read, uint64_t base, uint64_t address, uint64_t page_size) {
        uint64_t offset = address - base;
        ElfPlace place = ELF_PLACE_OUTSIDE;
        bool sealed = false;
        Elf64_Ehdr e;
        Elf64_Phdr p;

        if (base == 0 || !read(&e, base, sizeof e) || !is_header(&e))
                return ELF_PLACE_UNKNOWN;
        for (unsigned i = 0; i < e.e_phnum; i++) {
                if (!read(&p, base + e.e_phoff + i * sizeof p, sizeof p))
                        return ELF_PLACE_UNKNOWN;
                if (p.p_type == PT_GNU_RELRO && is_sealed(&p, offset, page_size))
                        sealed = true;
                if (p.p_type == PT_LOAD && offset >= p.p_vaddr && offset - p.p_vaddr < p.p_memsz)
                        place = p.p_flags & PF_W ? ELF_PLACE_DATA : ELF_PLACE_FIXED;
        }
        return sealed && place == ELF_PLACE_DATA ? ELF_PLACE_SEALED : place;
}
