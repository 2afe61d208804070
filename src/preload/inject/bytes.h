/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads and writes numbers at any alignment, and copies bytes, without libc. The supported machines
 * are little endian, as the driver's structures are. builtins.c defines on top of this the
 * functions that a compiler may call by itself (memcpy, memmove, memset, memcmp). */

#include <stddef.h>
#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little endian");

typedef uint32_t __attribute__((aligned(1), may_alias)) Loose32;
typedef uint64_t __attribute__((aligned(1), may_alias)) Loose64;
typedef uint64_t __attribute__((vector_size(16), aligned(1), may_alias)) Loose128;

static inline uint32_t get32(const void *p) {
        return *(const Loose32 *) p;
}
static inline uint64_t get64(const void *p) {
        return *(const Loose64 *) p;
}
static inline void put32(void *p, uint32_t value) {
        *(Loose32 *) p = value;
}
static inline void put64(void *p, uint64_t value) {
        *(Loose64 *) p = value;
}

static inline void bytes_copy(void *to, const void *from, size_t n) {
        uint8_t *t = to;
        const uint8_t *f = from;

        for (; n >= 16; n -= 16, t += 16, f += 16)
                *(Loose128 *) t = *(const Loose128 *) f;
        for (; n >= 8; n -= 8, t += 8, f += 8)
                put64(t, get64(f));
        for (; n > 0; n--)
                *t++ = *f++;
}

static inline void bytes_clear(void *to, size_t n) {
        uint8_t *t = to;

        for (; n >= 16; n -= 16, t += 16)
                *(Loose128 *) t = (Loose128){0, 0};
        for (; n >= 8; n -= 8, t += 8)
                put64(t, 0);
        for (; n > 0; n--)
                *t++ = 0;
}
