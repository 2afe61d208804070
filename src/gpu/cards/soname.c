/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/soname.h"

#include <elf.h>
#include <errno.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"

enum {
        SEGMENTS_MAX = 64, /* a library has about ten */
        DYNAMIC_MAX = 512, /* entries; a library has about thirty */
};

#if defined __aarch64__
enum { OUR_MACHINE = EM_AARCH64 };
#else
enum { OUR_MACHINE = EM_X86_64 };
#endif

typedef struct Elf {
        int fd;
        Elf64_Phdr segments[SEGMENTS_MAX];
        size_t n_segments;
        /* the string table's place in the file; the SONAME's offset in it */
        uint64_t strings, strings_size, soname;
} Elf;

/* Reads up to n bytes, fewer only at the end of the file; -1 for an error. */
static ssize_t read_at(int fd, uint64_t offset, void *into, size_t n) {
        ssize_t r;

        if (offset > INT64_MAX)
                return -1;
        do
                r = pread(fd, into, n, (off_t) offset);
        while (r < 0 && errno == EINTR);
        return r;
}

static bool read_whole(int fd, uint64_t offset, void *into, size_t n) {
        return read_at(fd, offset, into, n) == (ssize_t) n;
}

static bool read_segments(Elf *e) {
        Elf64_Ehdr h;

        if (!read_whole(e->fd, 0, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
                return false;
        if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_type != ET_DYN ||
            h.e_machine != OUR_MACHINE)
                return false;
        if (h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phnum == 0 || h.e_phnum > SEGMENTS_MAX)
                return false;
        e->n_segments = h.e_phnum;
        return read_whole(e->fd, h.e_phoff, e->segments, e->n_segments * sizeof e->segments[0]);
}

static bool to_offset(const Elf *e, uint64_t address, uint64_t *ret) {
        for (size_t i = 0; i < e->n_segments; i++) {
                const Elf64_Phdr *p = &e->segments[i];

                if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
                        return u64_add(ret, p->p_offset, address - p->p_vaddr);
        }
        return false;
}

static bool read_dynamic(Elf *e, const Elf64_Phdr *segment) {
        Elf64_Dyn entries[DYNAMIC_MAX];
        bool has_strings = false, has_soname = false;
        size_t bytes = segment->p_filesz < sizeof entries ? segment->p_filesz : sizeof entries;
        ssize_t n = read_at(e->fd, segment->p_offset, entries, bytes);

        for (size_t i = 0; n > 0 && i < (size_t) n / sizeof entries[0] && entries[i].d_tag != DT_NULL; i++) {
                if (entries[i].d_tag == DT_STRTAB)
                        has_strings = to_offset(e, entries[i].d_un.d_ptr, &e->strings);
                else if (entries[i].d_tag == DT_STRSZ)
                        e->strings_size = entries[i].d_un.d_val;
                else if (entries[i].d_tag == DT_SONAME) {
                        has_soname = true;
                        e->soname = entries[i].d_un.d_val;
                }
        }
        return has_strings && has_soname && e->soname < e->strings_size;
}

static bool find_soname(Elf *e) {
        for (size_t i = 0; i < e->n_segments; i++)
                if (e->segments[i].p_type == PT_DYNAMIC)
                        return read_dynamic(e, &e->segments[i]);
        return false;
}

static bool is_file_name(const char *name) {
        if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                return false;
        for (; *name != '\0'; name++)
                if (*name <= ' ' || *name > '~' || *name == '/')
                        return false;
        return true;
}

int soname_read(int fd, char (*ret)[SONAME_SIZE]) {
        char name[SONAME_SIZE];
        Elf e = {.fd = fd};
        uint64_t offset;
        ssize_t n;

        if (!read_segments(&e) || !find_soname(&e) || !u64_add(&offset, e.strings, e.soname))
                return SONAME_E_NONE;
        n = read_at(fd, offset, name, sizeof name);
        if (n <= 0 || !memchr(name, '\0', (size_t) n) || !is_file_name(name))
                return SONAME_E_NONE;
        (void) snprintf(*ret, sizeof *ret, "%s", name);
        return 0;
}
