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

/* The first `most` bytes, for messages about received text. */
#define STR_CUT(s, most) (int) ((s).len < (most) ? (s).len : (most)), (s).data

static inline Str str_from(const char *text) {
        return (Str){text, text ? strlen(text) : 0};
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

/* NUL-terminated copy, owned by the caller; NULL when out of memory. */
char *str_dup(Str s) __attribute__((malloc, warn_unused_result));

/* Parses decimal digits, without sign or blanks. false when the text is empty, malformed or too
 * large for the type. */
bool str_to_u64(Str s, uint64_t *ret);
bool str_to_u32(Str s, uint32_t *ret);

/* FNV-1a. Its value is stable between runs, to tell applications apart. Not for hash tables with
 * keys that an attacker chooses. */
uint64_t str_hash64(Str s, uint64_t seed);
