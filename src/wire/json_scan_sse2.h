/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The loops of json_scan.h in SSE2, which every x86-64 has. */

#include <emmintrin.h>

#include "wire/json_scan_words.h"

static inline uint64_t scan_equal16(__m128i v, char byte) {
        return (unsigned) _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8(byte)));
}

static inline const char *scan_blanks_sse2(const char *p, const char *end) {
        while (end - p >= 16) {
                __m128i v = _mm_loadu_si128((const __m128i *) (const void *) p);
                uint64_t other = 0xffff ^ (scan_equal16(v, ' ') | scan_equal16(v, '\n') |
                                           scan_equal16(v, '\r') | scan_equal16(v, '\t'));

                if (other)
                        return p + __builtin_ctzll(other);
                p += 16;
        }
        return scan_blanks_words(p, end);
}

static inline const char *scan_plain_sse2(const char *p, const char *end) {
        const __m128i last_control = _mm_set1_epi8(0x1f);

        while (end - p >= 16) {
                __m128i v = _mm_loadu_si128((const __m128i *) (const void *) p);
                __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, last_control), v);
                uint64_t special =
                        scan_equal16(v, '"') | scan_equal16(v, '\\') | (unsigned) _mm_movemask_epi8(control);

                if (special)
                        return p + __builtin_ctzll(special);
                p += 16;
        }
        return scan_plain_words(p, end);
}

static inline ScanMasks scan_masks_sse2(const char *p) {
        const __m128i fold = _mm_set1_epi8(SCAN_CASE_BIT);
        ScanMasks m = {0};

        for (unsigned i = 0; i < 64; i += 16) {
                __m128i v = _mm_loadu_si128((const __m128i *) (const void *) (p + i));
                __m128i folded = _mm_or_si128(v, fold);

                m.quote |= scan_equal16(v, '"') << i;
                m.backslash |= scan_equal16(v, '\\') << i;
                m.open |= scan_equal16(folded, '{') << i;
                m.close |= scan_equal16(folded, '}') << i;
        }
        return m;
}
