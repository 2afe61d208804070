/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The three inner loops of reading JSON: over blanks, over the plain part of a string, and over the
 * structure of 64 bytes at once. Tests compare their two forms. No form reads a byte at or behind
 * `end`: the text is not padded. */

#include "wire/json_scan_words.h"

#ifdef __SSE2__
#include "wire/json_scan_sse2.h"

#define scan_blanks_long scan_blanks_sse2
#define scan_plain       scan_plain_sse2
#define scan_masks       scan_masks_sse2
#else
#define scan_blanks_long scan_blanks_words
#define scan_plain       scan_plain_words
#define scan_masks       scan_masks_words
#endif

/* Skips to the first byte that is no blank. Most gaps are none or a single space; indentation takes
 * the slow path. */
static inline const char *scan_blanks(const char *p, const char *end) {
        if (p == end || (unsigned char) *p > ' ')
                return p;
        if (end - p >= 2 && *p == ' ' && (unsigned char) p[1] > ' ')
                return p + 1;
        return scan_blanks_long(p, end);
}
