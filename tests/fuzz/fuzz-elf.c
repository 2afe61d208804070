/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a loaded object, and as the list of the dynamic linker behind it. Nothing outside of
 * them is read but through the reader, and the search ends. */

#include <assert.h>
#include <string.h>

#include "preload/inject/elf_slots.h"
#include "preload/inject/loaded.h"

#define BASE UINT64_C(0x7F0000100000)

enum { MAPS = 1024, MOVED = 2048, SLOTS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *bytes;
static size_t n_bytes;

static bool read_bytes(void *to, uint64_t from, size_t n) {
        if (from < BASE || from - BASE > n_bytes || n > n_bytes - (from - BASE))
                return false;
        memcpy(to, bytes + (from - BASE), n);
        return true;
}

static void slots(const ElfObject *o) {
        static const char *const names[] = {"missing", "first"};
        ElfSlot found[SLOTS];
        unsigned n;

        if (!elf_slots(read_bytes, o, names, 2, found, SLOTS, &n))
                return;
        assert(n <= SLOTS);
        for (unsigned i = 0; i < n; i++) {
                assert(found[i].name < 2);
                (void) elf_segment_at(read_bytes, BASE, found[i].address, i % 2 ? ELF_PAGE : 65536);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint64_t r;
        ElfObject o, several[2];

        if (size == 0)
                return 0;
        bytes = data;
        n_bytes = size;
        if (elf_open(read_bytes, BASE, BASE, &o)) {
                assert(o.base == BASE && o.symbols != 0 && o.strings != 0);
                (void) elf_find(read_bytes, &o, "second");
                (void) elf_is(read_bytes, &o, "libimage.so.1");
                slots(&o);
        }
        r = loaded_find_after(read_bytes, BASE + MAPS, 0x1234, "first");
        assert(r == 0 || loaded_find_after(read_bytes, BASE + MAPS, 0x1234, "first") == r);
        r = loaded_find_between(read_bytes, BASE + MAPS, 0x1234, "first", "second", "third");
        assert(r == 0 || loaded_find_after(read_bytes, BASE + MAPS, 0x1234, "first") != 0);
        if (elf_open(read_bytes, BASE, BASE + MOVED, &o))
                slots(&o);
        r = loaded_find_before(read_bytes, BASE + MAPS, 0x1234, "first");
        assert(r == 0 || loaded_find_before(read_bytes, BASE + MAPS, 0x1234, "first") == r);
        if (loaded_find_holder(read_bytes, BASE + MAPS, BASE + 0x4000, &o))
                assert(o.base == 0 ||
                       elf_segment_at(read_bytes, o.base, BASE + 0x4000, ELF_PAGE) > ELF_SEGMENT_NONE);
        assert(loaded_find_objects(read_bytes, BASE + MAPS, "libimage.so.1", several, 2) <= 2);
        return 0;
}
