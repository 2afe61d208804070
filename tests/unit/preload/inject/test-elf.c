/* SPDX-License-Identifier: Apache-2.0 */
#include "image.h"

static void finds(void) {
        ElfObject o;

        ASSERT_TRUE(elf_open(image_read, IMAGE_BASE, IMAGE_BASE + IMAGE_DYNAMIC, &o));
        ASSERT_INT(elf_find(image_read, &o, "first"), IMAGE_BASE + 0x10);
        ASSERT_INT(elf_find(image_read, &o, "second"), IMAGE_BASE + 0x20);
        ASSERT_INT(elf_find(image_read, &o, "missing"), 0);
        ASSERT_INT(elf_find(image_read, &o, "chosen"), 0);
        ASSERT_INT(elf_find(image_read, &o, "firs"), 0);
        ASSERT_INT(elf_find(image_read, &o, "firsts"), 0);
        ASSERT_INT(elf_find(image_read, &o, ""), 0);
        ASSERT_TRUE(elf_is(image_read, &o, "libimage.so.1"));
        ASSERT_FALSE(elf_is(image_read, &o, "libimage.so"));
        ASSERT_FALSE(elf_is(image_read, &o, "libimage.so.12"));
}

static void old_table(void) {
        image_old_hash();
        finds();
}

static void gnu_table(void) {
        image_gnu_hash();
        finds();
}

/* The base, which is an address minus the one that was linked to, is small then. */
static void a_vdso_that_is_linked_to_the_kernel_half(void) {
        const uint64_t link = UINT64_C(0xFFFFFFFFFF700000);
        uint64_t first = link + 0x10;
        ElfObject o;

        image_old_hash();
        image_put(IMAGE_SYMBOLS + sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_value), &first, sizeof first);
        image_dynamic(0, DT_SYMTAB, link + IMAGE_SYMBOLS);
        image_dynamic(1, DT_STRTAB, link + IMAGE_STRINGS);
        image_dynamic(4, DT_HASH, link + IMAGE_HASH);
        ASSERT_TRUE(elf_open(image_read, IMAGE_BASE - link, IMAGE_BASE + IMAGE_DYNAMIC, &o));
        ASSERT_TRUE(elf_is(image_read, &o, "libimage.so.1"));
        ASSERT_INT(elf_find(image_read, &o, "first"), IMAGE_BASE + 0x10);
}

static void bloom_filter_rejects(void) {
        ElfObject o;

        image_gnu_hash();
        image_put64(IMAGE_HASH + 16, 0);
        ASSERT_TRUE(elf_open(image_read, IMAGE_BASE, IMAGE_BASE, &o));
        ASSERT_INT(elf_find(image_read, &o, "first"), 0);
}

static void nothing_to_find(void) {
        ElfObject o;

        image_names(); /* no table */
        ASSERT_FALSE(elf_open(image_read, IMAGE_BASE, IMAGE_BASE, &o));
        ASSERT_FALSE(elf_open(image_read, IMAGE_BASE, 0, &o));
        ASSERT_FALSE(elf_open(image_read, IMAGE_BASE, IMAGE_BASE + IMAGE_SIZE - 8, &o));
        memset(image, 0xFF, sizeof image); /* no end */
        ASSERT_FALSE(elf_open(image_read, IMAGE_BASE, IMAGE_BASE, &o));
}

/* Every length, and every byte with another value: no read outside the image, and no endless
 * loop. */
static void damaged(void (*make)(void)) {
        ElfObject o;

        for (size_t size = 0; size < IMAGE_MAPS; size++) {
                make();
                image_size = size;
                if (elf_open(image_read, IMAGE_BASE, IMAGE_BASE, &o))
                        (void) elf_find(image_read, &o, "second");
        }
        for (size_t at = 0; at < IMAGE_MAPS; at++)
                for (unsigned value = 0; value < 3; value++) {
                        make();
                        image[at] = (uint8_t) (value == 0 ? image[at] + 1 : value == 1 ? 0xFF : 0);
                        image_reads = 0;
                        if (elf_open(image_read, IMAGE_BASE, IMAGE_BASE, &o)) {
                                (void) elf_find(image_read, &o, "second");
                                (void) elf_is(image_read, &o, "libimage.so.1");
                        }
                        ASSERT_TRUE(image_reads < 300000);
                }
}

static void damaged_old(void) {
        damaged(image_old_hash);
}

static void damaged_gnu(void) {
        damaged(image_gnu_hash);
}

static void a_chain_that_is_a_ring(void) {
        ElfObject o;

        image_old_hash();
        for (uint32_t i = 1; i < 5; i++)
                image_put32(IMAGE_HASH + 12 + i * 4, i == 4 ? 1 : i + 1);
        ASSERT_TRUE(elf_open(image_read, IMAGE_BASE, IMAGE_BASE, &o));
        ASSERT_INT(elf_find(image_read, &o, "nobody"), 0);
        ASSERT_INT(elf_find(image_read, &o, "second"), IMAGE_BASE + 0x20);
}

int main(void) {
        return TEST_MAIN(TEST(old_table), TEST(gnu_table), TEST(a_vdso_that_is_linked_to_the_kernel_half),
                         TEST(bloom_filter_rejects), TEST(nothing_to_find), TEST(damaged_old),
                         TEST(damaged_gnu), TEST(a_chain_that_is_a_ring));
}
