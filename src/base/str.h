/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A Str is a view of bytes that it does not own: received text, an arena, a literal. It is passed
 * by value and never freed. data may be NULL only when len is 0. An absent string equals an empty
 * one, as in Kubernetes objects. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Str {
        const char *data;
        size_t len;
} Str;

#define STR(literal) ((Str){"" literal, sizeof(literal) - 1})
#define STR_FMT      "%.*s"
#define STR_ARG(s)   (int) (s).len, (s).data

/* The first `most` bytes, for messages about received text; never ends within a UTF-8 character. */
#define STR_CUT(s, most) (int) str_cut((s), (most)), (s).data

static inline Str str_from(const char *text) {
        return (Str){text, text ? strlen(text) : 0};
}

/* The length of s without an incomplete UTF-8 character at its end, as a cut may leave one. A JSON
 * writer would send U+FFFD for it, and the API server's text would never equal ours. */
static inline size_t str_whole(Str s) {
        size_t after = 0, wanted;
        unsigned char first;

        while (after < 3 && after < s.len && ((unsigned char) s.data[s.len - after - 1] & 0xC0) == 0x80)
                after++;
        if (after == s.len)
                return s.len;
        first = (unsigned char) s.data[s.len - after - 1];
        wanted = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
        return after < wanted ? s.len - after - 1 : s.len;
}

static inline size_t str_cut(Str s, size_t most) {
        return s.len <= most ? s.len : str_whole((Str){s.data, most});
}

static inline bool str_is_empty(Str s) {
        return s.len == 0;
}

static inline bool str_eq(Str a, Str b) {
        return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* strcmp() order; a prefix sorts before the longer string. */
int str_compare(Str a, Str b);
bool str_has_prefix(Str s, Str prefix);
Str str_trim(Str s);

/* Splits *rest at the first `separator`. Returns the part before it and moves *rest behind it, or
 * to empty. */
Str str_split(Str *rest, char separator);

/* Returns how far a word is from a name that may have been meant: letters to insert, remove or
 * replace. 0 when the name begins with the word, STR_MISSPELLING_MAX when either has more letters
 * than that. */
enum { STR_MISSPELLING_MAX = 40 };
unsigned str_misspelling(Str word, Str name);

/* Copies the bytes of s, which may be empty, to *at and moves *at behind them. Returns the copy. */
static inline Str str_put(char **at, Str s) {
        Str copy = {*at, s.len};

        if (s.len > 0) /* memcpy() must not be given NULL */
                memcpy(*at, s.data, s.len);
        *at += s.len;
        return copy;
}

/* NUL-terminated copy, owned by the caller; NULL when out of memory. */
char *str_dup(Str s) __attribute__((malloc, warn_unused_result));

/* Parses decimal digits, without sign or blanks. false when the text is empty, malformed or too
 * large for the type. */
bool str_to_u64(Str s, uint64_t *ret);
bool str_to_u32(Str s, uint32_t *ret);

/* FNV-1a. Its value is stable between runs, to tell applications apart. Not for hash tables with
 * keys that an attacker chooses. */
uint64_t str_hash64(Str s, uint64_t seed);
