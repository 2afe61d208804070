/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing over U+10FFFF. Each byte that
 * is not UTF-8 becomes one U+FFFD, as in Go's decoder, so that this reader and the API server read
 * the same text. */

#include "base/str.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Length of the well-formed sequence at p (p < end), 0 when there is none. */
static inline size_t utf8_length(const char *p, const char *end) {
        const unsigned char *s = (const unsigned char *) p;
        unsigned char low = 0x80, high = 0xbf; /* bounds of the second byte */
        size_t n;

        if (s[0] < 0x80)
                return 1;
        if (s[0] < 0xc2 || s[0] > 0xf4)
                return 0;
        n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
        if ((size_t) (end - p) < n)
                return 0;
        if (s[0] == 0xe0)
                low = 0xa0; /* below: overlong */
        else if (s[0] == 0xed)
                high = 0x9f; /* above: surrogates */
        else if (s[0] == 0xf0)
                low = 0x90; /* below: overlong */
        else if (s[0] == 0xf4)
                high = 0x8f; /* above: beyond U+10FFFF */
        if (s[1] < low || s[1] > high)
                return 0;
        for (size_t i = 2; i < n; i++)
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
        return n;
}

static inline bool utf8_is_valid(Str s) {
        const char *p = s.data, *end = s.data + s.len;

        while (p < end) {
                uint64_t word;
                size_t n;

                if (end - p >= 8) {
                        memcpy(&word, p, sizeof word);
                        if (!(word & UINT64_C(0x8080808080808080))) {
                                p += 8;
                                continue;
                        }
                }
                n = utf8_length(p, end);
                if (n == 0)
                        return false;
                p += n;
        }
        return true;
}

/* Writes one code point, at most 4 bytes; returns how many. */
static inline size_t utf8_encode(uint32_t code, char *out) {
        if (code < 0x80) {
                out[0] = (char) code;
                return 1;
        }
        if (code < 0x800) {
                out[0] = (char) (0xc0 | code >> 6);
                out[1] = (char) (0x80 | (code & 0x3f));
                return 2;
        }
        if (code < 0x10000) {
                out[0] = (char) (0xe0 | code >> 12);
                out[1] = (char) (0x80 | (code >> 6 & 0x3f));
                out[2] = (char) (0x80 | (code & 0x3f));
                return 3;
        }
        out[0] = (char) (0xf0 | code >> 18);
        out[1] = (char) (0x80 | (code >> 12 & 0x3f));
        out[2] = (char) (0x80 | (code >> 6 & 0x3f));
        out[3] = (char) (0x80 | (code & 0x3f));
        return 4;
}
