/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A loaded object and the dynamic linker's list, in a buffer that stands for memory at IMAGE_BASE.
 * Only its bytes can be read. */

#include <elf.h>

#include "preload/inject/elf.h"
#include "test.h"

#define IMAGE_BASE UINT64_C(0x7F0000100000)

enum {
        IMAGE_SIZE = 4096,
        IMAGE_DYNAMIC = 0,
        IMAGE_SYMBOLS = 256,
        IMAGE_STRINGS = 512,
        IMAGE_HASH = 768,
        IMAGE_MAPS = 1024,
        IMAGE_MOVED = 2048, /* the dynamic section, if headers are at the beginning */
        IMAGE_SLOTS = 2560,
        IMAGE_HEADERS = 64,
};

static uint8_t image[IMAGE_SIZE];
static size_t image_size;
static unsigned image_reads;

static inline bool image_read(void *to, uint64_t from, size_t n) {
        image_reads++;
        if (from < IMAGE_BASE || from - IMAGE_BASE > image_size || n > image_size - (from - IMAGE_BASE))
                return false;
        memcpy(to, image + (from - IMAGE_BASE), n);
        return true;
}

static inline void image_put(size_t at, const void *bytes, size_t n) {
        ASSERT_TRUE(at + n <= IMAGE_SIZE);
        memcpy(image + at, bytes, n);
}

static inline void image_put32(size_t at, uint32_t value) {
        image_put(at, &value, sizeof value);
}

static inline void image_put64(size_t at, uint64_t value) {
        image_put(at, &value, sizeof value);
}

static inline void image_dynamic(unsigned i, int64_t tag, uint64_t value) {
        Elf64_Dyn d = {.d_tag = tag, .d_un = {.d_val = value}};

        image_put(IMAGE_DYNAMIC + i * sizeof d, &d, sizeof d);
}

/* Symbol 0 is unused. 1: "first" at 0x10; 2: "second" at 0x20; 3: "missing", not defined here; 4:
 * "chosen", an indirect function. */
static inline void image_names(void) {
        static const char strings[] = "\0first\0second\0missing\0chosen\0libimage.so.1";
        const Elf64_Sym symbols[] = {
                {0},
                {1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 7, 0x10, 4},
                {7, ELF64_ST_INFO(STB_WEAK, STT_FUNC), 0, 7, 0x20, 4},
                {14, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, SHN_UNDEF, 0, 0},
                {22, ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC), 0, 7, 0x40, 4},
        };

        memset(image, 0, sizeof image);
        image_size = sizeof image;
        image_put(IMAGE_SYMBOLS, symbols, sizeof symbols);
        image_put(IMAGE_STRINGS, strings, sizeof strings);
        image_dynamic(0, DT_SYMTAB, IMAGE_SYMBOLS);
        image_dynamic(1, DT_STRTAB, IMAGE_BASE + IMAGE_STRINGS); /* relocations, one of each kind */
        image_dynamic(2, DT_STRSZ, sizeof strings);
        image_dynamic(3, DT_SONAME, 29);
}

/* One bucket with all symbols. */
static inline void image_old_hash(void) {
        image_names();
        image_dynamic(4, DT_HASH, IMAGE_HASH);
        image_put32(IMAGE_HASH, 1);
        image_put32(IMAGE_HASH + 4, 5);
        image_put32(IMAGE_HASH + 8, 1);
        for (uint32_t i = 1; i < 5; i++)
                image_put32(IMAGE_HASH + 12 + i * 4, i < 4 ? i + 1 : 0);
}

static inline uint32_t image_hash_of(const char *name) {
        uint32_t h = 5381;

        for (; *name; name++)
                h = h * 33 + (uint8_t) *name;
        return h;
}

static inline void image_gnu_hash(void) {
        static const char *const names[] = {"first", "second", "missing", "chosen"};

        image_names();
        image_dynamic(4, DT_GNU_HASH, IMAGE_HASH);
        image_put32(IMAGE_HASH, 1);      /* buckets */
        image_put32(IMAGE_HASH + 4, 1);  /* the first symbol */
        image_put32(IMAGE_HASH + 8, 1);  /* words of the Bloom filter */
        image_put32(IMAGE_HASH + 12, 6); /* shift */
        image_put64(IMAGE_HASH + 16, UINT64_MAX);
        image_put32(IMAGE_HASH + 24, 1);
        for (uint32_t i = 0; i < 4; i++)
                image_put32(IMAGE_HASH + 28 + i * 4, (image_hash_of(names[i]) & ~1u) | (i == 3));
}

/* Entry i of the list; next: the entry behind it, or -1 at the end. */
static inline uint64_t image_map(unsigned i, uint64_t base, uint64_t dynamic, int next) {
        size_t at = IMAGE_MAPS + i * 32;

        image_put64(at, base);
        image_put64(at + 16, dynamic);
        image_put64(at + 24, next < 0 ? 0 : IMAGE_BASE + IMAGE_MAPS + (unsigned) next * 32);
        return IMAGE_BASE + at;
}
