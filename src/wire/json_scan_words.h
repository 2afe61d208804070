/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The loops of json_scan.h in 64-bit words, for every processor. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SCAN_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define SCAN_HIGH       SCAN_EACH(0x80)

static inline uint64_t scan_load(const char *p) {
        uint64_t word;

        memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word); /* the first byte is the lowest, as in the masks */
#endif
        return word;
}

/* The high bit of each byte of `word` that equals `byte`. Exact: no carry runs from one byte into
 * the next.
 */
static inline uint64_t scan_equal(uint64_t word, unsigned char byte) {
        uint64_t x = word ^ SCAN_EACH(byte);

        return ~(((x & ~SCAN_HIGH) + ~SCAN_HIGH) | x) & SCAN_HIGH;
}

/* The high bit of each byte below 0x20, exactly. */
static inline uint64_t scan_control(uint64_t word) {
        return ~(((word & ~SCAN_HIGH) + SCAN_EACH(0x60)) | word) & SCAN_HIGH;
}

static inline bool scan_is_blank(char c) {
        return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline const char *scan_blanks_words(const char *p, const char *end) {
        while (end - p >= 8) {
                uint64_t w = scan_load(p);
                uint64_t other = SCAN_HIGH ^ (scan_equal(w, ' ') | scan_equal(w, '\n') | scan_equal(w, '\r') |
                                              scan_equal(w, '\t'));

                if (other)
                        return p + __builtin_ctzll(other) / 8;
                p += 8;
        }
        while (p < end && scan_is_blank(*p))
                p++;
        return p;
}

/* Skips to the first quote, backslash or control character. */
static inline const char *scan_plain_words(const char *p, const char *end) {
        while (end - p >= 8) {
                uint64_t w = scan_load(p);
                uint64_t special = scan_equal(w, '"') | scan_equal(w, '\\') | scan_control(w);

                if (special)
                        return p + __builtin_ctzll(special) / 8;
                p += 8;
        }
        while (p < end && *p != '"' && *p != '\\' && (unsigned char) *p >= 0x20)
                p++;
        return p;
}

/* Properties of 64 bytes of text, with a bit for each byte; the first byte is bit 0. */
typedef struct ScanMasks {
        uint64_t quote, backslash;
        uint64_t open, close; /* of objects and arrays alike */
} ScanMasks;

/* Packs the high bits of the eight bytes into eight bits: the products put byte i's bit at 56 + i,
 * without carries. */
static inline uint64_t scan_pack(uint64_t high) {
        return (high >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

/* '[' and '{' differ in one bit only, and so do their partners. */
enum { SCAN_CASE_BIT = 0x20 };

static inline ScanMasks scan_masks_words(const char *p) {
        ScanMasks m = {0};

        for (unsigned i = 0; i < 8; i++) {
                uint64_t w = scan_load(p + 8 * i), folded = w | SCAN_EACH(SCAN_CASE_BIT);

                m.quote |= scan_pack(scan_equal(w, '"')) << 8 * i;
                m.backslash |= scan_pack(scan_equal(w, '\\')) << 8 * i;
                m.open |= scan_pack(scan_equal(folded, '{')) << 8 * i;
                m.close |= scan_pack(scan_equal(folded, '}')) << 8 * i;
        }
        return m;
}
