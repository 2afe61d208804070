/* SPDX-License-Identifier: Apache-2.0 */

/* Functions that a compiler may call for copies and initialisers, even if the source does not.
 * libc's memcpy() has a symbol version that old systems lack, so this library has its own, hidden
 * ones. */

#include "preload/inject/bytes.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n) {
        bytes_copy(to, from, n);
        return to;
}

void *memmove(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n) {
        uint8_t *t = to;
        const uint8_t *f = from;

        if (t <= f || t >= f + n)
                bytes_copy(to, from, n);
        else
                while (n-- > 0)
                        t[n] = f[n];
        return to;
}

void *memset(void *to, int byte, size_t n);
void *memset(void *to, int byte, size_t n) {
        uint64_t word = (uint8_t) byte * UINT64_C(0x0101010101010101);
        uint8_t *t = to;

        for (; n >= 8; n -= 8, t += 8)
                put64(t, word);
        while (n-- > 0)
                *t++ = (uint8_t) byte;
        return to;
}

int memcmp(const void *a, const void *b, size_t n);
int memcmp(const void *a, const void *b, size_t n) {
        const uint8_t *x = a, *y = b;

        for (; n > 0; n--, x++, y++)
                if (*x != *y)
                        return *x < *y ? -1 : 1;
        return 0;
}
