/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/inject/loaded.h"

#include <link.h>

#include "preload/inject/bytes.h"
#include "preload/inject/usermem.h"

enum {
        OBJECTS_MAX = 8192, /* objects in one process: with more, the list is taken for a ring */
        MAP_HEAD = 4 * 8,   /* of struct link_map: l_addr, l_name, l_ld, l_next */
};

typedef struct MapHead {
        uint64_t base, name, dynamic, next;
} MapHead;

_Static_assert(sizeof(MapHead) == MAP_HEAD, "MapHead");

/* ---- the list ---- */

/* Reads the entry at *at, and moves *at to the next one. In an entry that the linker has not
 * finished, the dynamic section cannot be read or has no table yet, and elf_open() fails. */
static bool next_object(ElfRead read, uint64_t *at, MapHead *ret) {
        if (*at == 0 || !read(ret, *at, sizeof *ret))
                return false;
        *at = ret->next;
        return true;
}

uint64_t loaded_find_after(ElfRead read, uint64_t head, uint64_t after, const char *name) {
        uint64_t at = head, r;
        bool behind = false;
        ElfObject o;
        MapHead m;

        for (unsigned i = 0; i < OBJECTS_MAX && next_object(read, &at, &m); i++) {
                if (m.dynamic == after) {
                        behind = true;
                        continue;
                }
                if (!behind || m.dynamic == 0 || !elf_open(read, m.base, m.dynamic, &o))
                        continue;
                r = elf_find(read, &o, name);
                if (r != 0)
                        return r;
        }
        return 0;
}

uint64_t loaded_find_between(ElfRead read, uint64_t head, uint64_t after, const char *name, const char *last,
                             const char *never) {
        uint64_t at = head, found = 0;
        bool behind = false;
        ElfObject o;
        MapHead m;

        for (unsigned i = 0; i < OBJECTS_MAX && next_object(read, &at, &m); i++) {
                if (m.dynamic == after) {
                        behind = true;
                        continue;
                }
                if (m.dynamic == 0 || !elf_open(read, m.base, m.dynamic, &o))
                        continue;
                if (elf_find(read, &o, last) != 0)
                        return found;
                if (behind && found == 0 && elf_find(read, &o, never) == 0)
                        found = elf_find(read, &o, name);
        }
        return 0;
}

uint64_t loaded_find_before(ElfRead read, uint64_t head, uint64_t before, const char *name) {
        uint64_t at = head, r;
        ElfObject o;
        MapHead m;

        for (unsigned i = 0; i < OBJECTS_MAX && next_object(read, &at, &m) && m.dynamic != before; i++) {
                if (m.dynamic == 0 || !elf_open(read, m.base, m.dynamic, &o))
                        continue;
                r = elf_find(read, &o, name);
                if (r != 0)
                        return r;
        }
        return 0;
}

bool loaded_find_holder(ElfRead read, uint64_t head, uint64_t address, ElfObject *ret) {
        uint64_t at = head, fixed = 0;
        MapHead m;

        for (unsigned i = 0; i < OBJECTS_MAX && next_object(read, &at, &m); i++) {
                if (m.dynamic == 0)
                        continue;
                if (m.base == 0 && fixed == 0)
                        fixed = m.dynamic;
                if (elf_segment_at(read, m.base, address, ELF_PAGE) > ELF_SEGMENT_NONE)
                        return elf_open(read, m.base, m.dynamic, ret);
        }
        return fixed != 0 && elf_open(read, 0, fixed, ret);
}

unsigned loaded_find_objects(ElfRead read, uint64_t head, const char *soname, ElfObject ret[],
                             unsigned most) {
        uint64_t at = head;
        unsigned n = 0;
        MapHead m;

        for (unsigned i = 0; i < OBJECTS_MAX && n < most && next_object(read, &at, &m); i++)
                if (m.dynamic != 0 && elf_open(read, m.base, m.dynamic, &ret[n]) &&
                    elf_is(read, &ret[n], soname))
                        n++;
        return n;
}

/* ---- this process ---- */

extern struct r_debug _r_debug __attribute__((weak));
extern struct r_debug *_dl_debug_addr __attribute__((weak));
extern char **environ __attribute__((weak));
extern const char own_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));

static const struct r_debug *find_debug(void) {
        const struct r_debug *glibc = &_r_debug, *const *musl =
                                                         (const struct r_debug *const *) &_dl_debug_addr;

        if (glibc && glibc->r_map)
                return glibc;
        return musl ? *musl : NULL;
}

bool loaded_read(void *to, uint64_t from, size_t n) {
        return from != 0 && usermem_read(to, from, n) == 0;
}

static bool read_plainly(void *to, uint64_t from, size_t n) {
        bytes_copy(to, (const void *) (uintptr_t) from, n);
        return true;
}

static bool is_at_rest(const struct r_debug *d) {
        return __atomic_load_n(&d->r_state, __ATOMIC_ACQUIRE) == RT_CONSISTENT;
}

/* The C library is among the objects that were loaded at start, which stay loaded. So the list is
 * read without system calls, which a sandbox could refuse, unless the linker is changing it just
 * now. */
uint64_t loaded_next(const char *name) {
        const struct r_debug *d = find_debug();

        return d ? loaded_find_after(is_at_rest(d) ? read_plainly : loaded_read,
                                     (uint64_t) (uintptr_t) d->r_map, (uint64_t) (uintptr_t) own_dynamic,
                                     name)
                 : 0;
}

/* glibc is recognised by a function that no library interposes. A library that interposes libcuda
 * as well is another copy of this one, which would count once more what is counted here. */
uint64_t loaded_before_libc(const char *name) {
        const struct r_debug *d = find_debug();

        return d ? loaded_find_between(is_at_rest(d) ? read_plainly : loaded_read,
                                       (uint64_t) (uintptr_t) d->r_map, (uint64_t) (uintptr_t) own_dynamic,
                                       name, "gnu_get_libc_version", "cuLaunchKernel")
                 : 0;
}

uint64_t loaded_before_self(const char *name) {
        const struct r_debug *d = find_debug();

        return d ? loaded_find_before(is_at_rest(d) ? read_plainly : loaded_read,
                                      (uint64_t) (uintptr_t) d->r_map, (uint64_t) (uintptr_t) own_dynamic,
                                      name)
                 : 0;
}

/* The list is not consistent until all objects are relocated. It may be inconsistent later, too,
 * but then the C library has been initialized. */
bool loaded_is_ready(void) {
        const struct r_debug *d = find_debug();

        return d && (is_at_rest(d) || (&environ && environ));
}

/* Compares byte by byte: the memory behind the end of a name need not be mapped. */
static bool is_text(uint64_t at, const char *text) {
        char c;

        do
                if (!loaded_read(&c, at++, 1) || c != *text)
                        return false;
        while (*text++ != '\0');
        return true;
}

bool loaded_as(const char *path) {
        const struct r_debug *d = find_debug();
        uint64_t at = d ? (uint64_t) (uintptr_t) d->r_map : 0;
        MapHead m;

        for (unsigned i = 0; i < OBJECTS_MAX && next_object(loaded_read, &at, &m); i++)
                if (m.dynamic == (uint64_t) (uintptr_t) own_dynamic)
                        return is_text(m.name, path);
        return false;
}

unsigned loaded_objects(const char *soname, ElfObject ret[], unsigned most) {
        const struct r_debug *d = find_debug();

        return d ? loaded_find_objects(loaded_read, (uint64_t) (uintptr_t) d->r_map, soname, ret, most) : 0;
}

bool loaded_object(const char *soname, ElfObject *ret) {
        return loaded_objects(soname, ret, 1) == 1;
}

bool loaded_holder(uintptr_t address, ElfObject *ret) {
        const struct r_debug *d = find_debug();

        return d && loaded_find_holder(loaded_read, (uint64_t) (uintptr_t) d->r_map, address, ret);
}

uint64_t loaded_function(const ElfObject *o, const char *name) {
        return elf_find(loaded_read, o, name);
}
