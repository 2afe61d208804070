/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/inject/elf_slots.h"

#include <elf.h>

enum {
        ENTRIES = 32,        /* relocations that are read at once */
        TABLE_MAX = 1 << 20, /* relocations; large libraries have some 100,000 */
#if defined(__x86_64__)
        KIND_JUMP = R_X86_64_JUMP_SLOT, /* may be filled in by the first call */
        KIND_ADDRESS = R_X86_64_GLOB_DAT,
        KIND_DATA = R_X86_64_64, /* a pointer in the object's data */
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

/* Adds the slot if it is of one of the names. false: no room, or the symbol cannot be read. */
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
