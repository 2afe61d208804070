/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/inject/elf.h"

#include <elf.h>

enum {
        DYNAMIC_MAX = 512,   /* entries of a dynamic section; real ones have some 30 */
        CHAIN_MAX = 1 << 16, /* names in one bucket */
        NAME_MAX_ = 64,      /* bytes of a name; longer ones are not searched for */
        HEADERS_MAX = 64,    /* program headers; real objects have a dozen */
};

#define KERNEL_HALF (UINT64_C(1) << 63)

/* glibc writes addresses into the dynamic section if it can. Other linkers leave those that the
 * object was linked to, as glibc does where the section is read-only. The vDSO of Linux before 3.16
 * on x86-64, and of User Mode Linux, is linked to an address in the kernel's half. */
static uint64_t mapped_address(uint64_t base, uint64_t value) {
        return value < base || value >= KERNEL_HALF ? base + value : value;
}

static void take_entry(ElfObject *o, const Elf64_Dyn *d) {
        switch (d->d_tag) {
        case DT_SYMTAB:
                o->symbols = mapped_address(o->base, d->d_un.d_ptr);
                break;
        case DT_STRTAB:
                o->strings = mapped_address(o->base, d->d_un.d_ptr);
                break;
        case DT_STRSZ:
                o->strings_size = d->d_un.d_val;
                break;
        case DT_HASH:
                o->hash = mapped_address(o->base, d->d_un.d_ptr);
                break;
        case DT_GNU_HASH:
                o->gnu_hash = mapped_address(o->base, d->d_un.d_ptr);
                break;
        case DT_JMPREL:
                o->jumps = mapped_address(o->base, d->d_un.d_ptr);
                break;
        case DT_PLTRELSZ:
                o->jumps_size = d->d_un.d_val;
                break;
        case DT_RELA:
                o->relocations = mapped_address(o->base, d->d_un.d_ptr);
                break;
        case DT_RELASZ:
                o->relocations_size = d->d_un.d_val;
                break;
        case DT_SONAME:
                o->soname = d->d_un.d_val;
                break;
        default:
                break;
        }
}

bool elf_open(ElfRead read, uint64_t base, uint64_t dynamic, ElfObject *ret) {
        ElfObject o = {.base = base};
        Elf64_Dyn d;

        for (unsigned i = 0; i < DYNAMIC_MAX; i++) {
                if (!read(&d, dynamic + i * sizeof d, sizeof d))
                        return false;
                if (d.d_tag == DT_NULL)
                        break;
                take_entry(&o, &d);
        }
        *ret = o;
        return o.symbols != 0 && o.strings != 0 && (o.hash != 0 || o.gnu_hash != 0);
}

static bool same_name(const char *found, const char *text, size_t n) {
        for (size_t i = 0; i < n; i++) {
                if (found[i] != text[i])
                        return false;
                if (text[i] == '\0')
                        return true;
        }
        return false;
}

/* Makes one read for all texts: each read may be a system call. */
unsigned elf_text_among(ElfRead read, const ElfObject *o, uint64_t offset, const char *const texts[],
                        unsigned n) {
        uint64_t left = offset < o->strings_size ? o->strings_size - offset : 0;
        size_t size = left < NAME_MAX_ ? (size_t) left : NAME_MAX_;
        char found[NAME_MAX_];

        if (size == 0 || !read(found, o->strings + offset, size))
                return n;
        for (unsigned i = 0; i < n; i++)
                if (same_name(found, texts[i], size))
                        return i;
        return n;
}

static bool text_is(ElfRead read, const ElfObject *o, uint64_t offset, const char *text) {
        return elf_text_among(read, o, offset, &text, 1) == 0;
}

bool elf_is(ElfRead read, const ElfObject *o, const char *soname) {
        return o->soname != 0 && text_is(read, o, o->soname, soname);
}

/* Returns the address of the symbol with that index, if it is the function of that name; else 0. */
static uint64_t symbol_at(ElfRead read, const ElfObject *o, uint32_t index, const char *name) {
        Elf64_Sym s;

        if (!read(&s, o->symbols + (uint64_t) index * sizeof s, sizeof s))
                return 0;
        if (s.st_shndx == SHN_UNDEF || s.st_value == 0 ||
            (ELF64_ST_TYPE(s.st_info) != STT_FUNC && ELF64_ST_TYPE(s.st_info) != STT_NOTYPE) ||
            (ELF64_ST_BIND(s.st_info) != STB_GLOBAL && ELF64_ST_BIND(s.st_info) != STB_WEAK))
                return 0;
        return text_is(read, o, s.st_name, name) ? o->base + s.st_value : 0;
}

static uint32_t gnu_hash_of(const char *name) {
        uint32_t h = 5381;

        for (; *name; name++)
                h = h * 33 + (uint8_t) *name;
        return h;
}

static uint64_t find_gnu(ElfRead read, const ElfObject *o, const char *name) {
        uint32_t header[4]; /* buckets, first symbol, bloom words, shift */
        uint32_t hash = gnu_hash_of(name), index, link;
        uint64_t word, buckets, chains, r;

        if (!read(header, o->gnu_hash, sizeof header) || header[0] == 0 || header[2] == 0)
                return 0;
        if (!read(&word, o->gnu_hash + sizeof header + (uint64_t) (hash / 64 & (header[2] - 1)) * 8, 8) ||
            !(word >> hash % 64 & word >> (hash >> (header[3] & 31)) % 64 & 1))
                return 0;
        buckets = o->gnu_hash + sizeof header + (uint64_t) header[2] * 8;
        chains = buckets + (uint64_t) header[0] * 4;
        if (!read(&index, buckets + (uint64_t) (hash % header[0]) * 4, 4) || index < header[1])
                return 0;
        for (unsigned i = 0; i < CHAIN_MAX; i++, index++) {
                if (!read(&link, chains + (uint64_t) (index - header[1]) * 4, 4))
                        return 0;
                r = (link | 1) == (hash | 1) ? symbol_at(read, o, index, name) : 0;
                if (r != 0 || link & 1)
                        return r;
        }
        return 0;
}

static uint32_t old_hash_of(const char *name) {
        uint32_t h = 0;

        for (; *name; name++) {
                h = (h << 4) + (uint8_t) *name;
                h ^= h >> 24 & 0xF0;
                h &= 0x0FFFFFFF;
        }
        return h;
}

static uint64_t find_old(ElfRead read, const ElfObject *o, const char *name) {
        uint32_t header[2], index; /* numbers of buckets and symbols */
        uint64_t buckets, r;

        if (!read(header, o->hash, sizeof header) || header[0] == 0)
                return 0;
        buckets = o->hash + sizeof header;
        if (!read(&index, buckets + (uint64_t) (old_hash_of(name) % header[0]) * 4, 4))
                return 0;
        for (unsigned i = 0; i < CHAIN_MAX && index != 0 && index < header[1]; i++) {
                r = symbol_at(read, o, index, name);
                if (r != 0)
                        return r;
                if (!read(&index, buckets + ((uint64_t) header[0] + index) * 4, 4))
                        return 0;
        }
        return 0;
}

uint64_t elf_find(ElfRead read, const ElfObject *o, const char *name) {
        return o->gnu_hash != 0 ? find_gnu(read, o, name) : find_old(read, o, name);
}

/* ---- segments ---- */

static bool is_header(const Elf64_Ehdr *e) {
        return e->e_ident[EI_MAG0] == ELFMAG0 && e->e_ident[EI_MAG1] == ELFMAG1 &&
               e->e_ident[EI_MAG2] == ELFMAG2 && e->e_ident[EI_MAG3] == ELFMAG3 &&
               e->e_ident[EI_CLASS] == ELFCLASS64 && e->e_phentsize == sizeof(Elf64_Phdr) &&
               e->e_phnum <= HEADERS_MAX;
}

/* The linker protects whole pages: from the page that the segment begins in to the last full
 * one. */
static bool is_relro(const Elf64_Phdr *p, uint64_t offset, uint64_t page_size) {
        uint64_t pages = ~(page_size - 1);
        uint64_t page = offset & pages, first = p->p_vaddr & pages, end = (p->p_vaddr + p->p_memsz) & pages;

        return page >= first && page < end;
}

ElfSegment elf_segment_at(ElfRead read, uint64_t base, uint64_t address, uint64_t page_size) {
        uint64_t offset = address - base;
        ElfSegment segment = ELF_SEGMENT_NONE;
        bool relro = false;
        Elf64_Ehdr e;
        Elf64_Phdr p;

        if (base == 0 || !read(&e, base, sizeof e) || !is_header(&e))
                return ELF_SEGMENT_UNKNOWN;
        for (unsigned i = 0; i < e.e_phnum; i++) {
                if (!read(&p, base + e.e_phoff + i * sizeof p, sizeof p))
                        return ELF_SEGMENT_UNKNOWN;
                if (p.p_type == PT_GNU_RELRO && is_relro(&p, offset, page_size))
                        relro = true;
                if (p.p_type == PT_LOAD && offset >= p.p_vaddr && offset - p.p_vaddr < p.p_memsz)
                        segment = p.p_flags & PF_W ? ELF_SEGMENT_WRITABLE : ELF_SEGMENT_READ_ONLY;
        }
        return relro && segment == ELF_SEGMENT_WRITABLE ? ELF_SEGMENT_RELRO : segment;
}
