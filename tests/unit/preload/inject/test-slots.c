/* SPDX-License-Identifier: Apache-2.0 */

/* Slots and segments of made-up objects, and of this process, which has no interposer.
 * tests/blackbox/front.py has the other cases. */

#include "preload/inject/slots.h"

#include <dlfcn.h>
#include <unistd.h>

#include "image-slots.h"
#include "preload/inject/elf_slots.h"
#include "preload/inject/loaded.h"

enum { SLOTS = 4 };

static const char *const names[] = {"nobody", "missing", "third"};

static bool look(ElfSlot *slots, unsigned max, unsigned *n) {
        ElfObject o;

        return elf_open(image_read, IMAGE_BASE, IMAGE_BASE, &o) &&
               elf_slots(image_read, &o, names, 3, slots, max, n);
}

static void both_tables(void) {
        ElfSlot slots[SLOTS];
        unsigned n;

        image_slots();
        ASSERT_TRUE(look(slots, SLOTS, &n));
        ASSERT_INT(n, 2);
        ASSERT_INT(slots[0].address, IMAGE_BASE + 0x800);
        ASSERT_INT(slots[0].name, 1);
        ASSERT_INT(slots[1].address, IMAGE_BASE + 0x808);
        ASSERT_TRUE(look(slots, 2, &n));
        ASSERT_FALSE(look(slots, 1, &n)); /* all or none */
        image_gnu_hash();                 /* without tables there are no slots */
        ASSERT_TRUE(look(slots, SLOTS, &n));
        ASSERT_INT(n, 0);
}

static void bad_tables(void) {
        ElfSlot slots[SLOTS];
        unsigned n;

        image_slots();
        image_dynamic(8, DT_RELASZ, UINT64_MAX);
        ASSERT_FALSE(look(slots, SLOTS, &n));
        image_dynamic(8, DT_RELASZ, IMAGE_SIZE);
        ASSERT_FALSE(look(slots, SLOTS, &n));
        image_slots();
        image_relocation(4, 0x808, UINT32_MAX, IMAGE_DATA, 0); /* no such symbol */
        ASSERT_FALSE(look(slots, SLOTS, &n));
        image_slots();
        image_dynamic(7, DT_RELA, 8); /* in no segment, but near one */
        image_dynamic(5, DT_JMPREL, UINT64_MAX);
        ASSERT_FALSE(look(slots, SLOTS, &n));
}

/* Every length, and every byte with another value: no read outside the image, and no endless
 * loop. */
static void damaged(void) {
        ElfSlot slots[SLOTS];
        unsigned n;

        for (size_t size = 0; size < IMAGE_SIZE; size++) {
                image_slots();
                image_size = size;
                if (look(slots, SLOTS, &n))
                        ASSERT_INT(n, 2);
        }
        for (size_t at = 0; at < IMAGE_SLOTS + 5 * sizeof(Elf64_Rela); at++)
                for (unsigned value = 0; value < 3; value++) {
                        image_slots();
                        image[at] = (uint8_t) (value == 0 ? image[at] + 1 : value == 1 ? 0xFF : 0);
                        image_reads = 0;
                        if (look(slots, SLOTS, &n))
                                ASSERT_TRUE(n <= SLOTS);
                        ASSERT_TRUE(image_reads < 3000);
                }
}

static ElfSegment place_of(uint64_t offset, uint64_t page_size) {
        return elf_segment_at(image_read, IMAGE_BASE, IMAGE_BASE + offset, page_size);
}

static ElfSegment place(uint64_t offset) {
        return place_of(offset, ELF_PAGE);
}

static void segments(void) {
        image_slots();
        image_headers();
        ASSERT_INT(place(0), ELF_SEGMENT_READ_ONLY);
        ASSERT_INT(place(0x1FFF), ELF_SEGMENT_READ_ONLY);
        ASSERT_INT(place(0x2000), ELF_SEGMENT_RELRO);
        ASSERT_INT(place(0x2FF8), ELF_SEGMENT_RELRO);
        ASSERT_INT(place(0x3000),
                   ELF_SEGMENT_WRITABLE); /* the page is not covered wholly, so it is not read-only */
        ASSERT_INT(place(0x4FFF), ELF_SEGMENT_WRITABLE);
        ASSERT_INT(place(0x5000), ELF_SEGMENT_NONE);
        ASSERT_INT(place((uint64_t) -1), ELF_SEGMENT_NONE);
        image_header(2, PT_GNU_RELRO, PF_R, 0x2008, 0x1FF8); /* the segment begins within a page */
        ASSERT_INT(place(0x2000), ELF_SEGMENT_RELRO);
        ASSERT_INT(place(0x3FF8), ELF_SEGMENT_RELRO);
        ASSERT_INT(place_of(0x2000, 0x10000),
                   ELF_SEGMENT_WRITABLE); /* with such large pages nothing is read-only */
}

static void unknown_segments(void) {
        image_slots();
        image_headers();
        ASSERT_INT(elf_segment_at(image_read, 0, IMAGE_BASE, ELF_PAGE), ELF_SEGMENT_UNKNOWN);
        image_put32(IMAGE_HEADERS - 8, UINT32_MAX); /* more headers than allowed */
        ASSERT_INT(place(0), ELF_SEGMENT_UNKNOWN);
        for (size_t size = 0; size < IMAGE_HEADERS + 3 * sizeof(Elf64_Phdr); size++) {
                image_headers();
                image_size = size;
                ASSERT_INT(place(0x2000), ELF_SEGMENT_UNKNOWN);
        }
}

/* ---- this process ---- */

static void this_process(void) {
        static const char *const wanted[] = {"getsid"};
        uint64_t value = 0;
        ElfSlot slots[SLOTS];
        ElfObject self;
        unsigned n;

        ASSERT_TRUE(getsid(0) >= 0); /* lazy slots have been bound */
        if (loaded_next("getsid") == 0)
                return; /* static programs have no slots: tests of another machine */
        ASSERT_TRUE(loaded_holder((uintptr_t) this_process, &self));
        ASSERT_TRUE(elf_slots(loaded_read, &self, wanted, 1, slots, SLOTS, &n));
        ASSERT_TRUE(n >= 1);
        ASSERT_TRUE(loaded_read(&value, slots[0].address, sizeof value));
        ASSERT_INT(value, (uintptr_t) dlsym(RTLD_DEFAULT, "getsid"));
        if (self.base == 0)
                return;
        ASSERT_TRUE(elf_segment_at(loaded_read, self.base, slots[0].address, ELF_PAGE) >=
                    ELF_SEGMENT_WRITABLE);
        ASSERT_INT(elf_segment_at(loaded_read, self.base, (uintptr_t) this_process, ELF_PAGE),
                   ELF_SEGMENT_READ_ONLY);
        ASSERT_INT(elf_segment_at(loaded_read, self.base, (uintptr_t) &n, ELF_PAGE), ELF_SEGMENT_NONE);
}

/* Without an interposer no slot of this program is changed. */
static void without_an_interposer(void) {
        static const uintptr_t ours[SLOT_NAMES] = {1, 1, 1, 1, 1};

        ASSERT_FALSE(slots_needed());
        ASSERT_TRUE(slots_redirect_caller(ours, (uintptr_t) without_an_interposer));
        ASSERT_TRUE(slots_redirect_library(ours, "libc.so.6"));
        ASSERT_TRUE(slots_redirect_library(ours, "libnobody.so.7"));
        ASSERT_FALSE(slots_is_probe(SLOT_MMAP));
}

int main(void) {
        return TEST_MAIN(TEST(both_tables), TEST(bad_tables), TEST(damaged), TEST(segments),
                         TEST(unknown_segments), TEST(this_process), TEST(without_an_interposer));
}
