/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <ctype.h>
#include <stdlib.h>

int str_compare(Str a, Str b) {
        size_t common = a.len < b.len ? a.len : b.len;
        int r = common > 0 ? memcmp(a.data, b.data, common) : 0;

        if (r != 0)
                return r;
        return (a.len > b.len) - (a.len < b.len);
}

bool str_has_prefix(Str s, Str prefix) {
        return s.len >= prefix.len && str_eq((Str){s.data, prefix.len}, prefix);
}

Str str_trim(Str s) {
        while (s.len > 0 && isspace((unsigned char) s.data[0])) {
                s.data++;
                s.len--;
        }
        while (s.len > 0 && isspace((unsigned char) s.data[s.len - 1]))
                s.len--;
        return s;
}

Str str_split(Str *rest, char separator) {
        const char *at = rest->len > 0 ? memchr(rest->data, separator, rest->len) : NULL;
        Str head = *rest;

        if (!at) {
                *rest = (Str){NULL, 0};
                return head;
        }
        head.len = (size_t) (at - rest->data);
        rest->len -= head.len + 1;
        rest->data = at + 1;
        return head;
}

static unsigned least(unsigned a, unsigned b, unsigned c) {
        unsigned ab = a < b ? a : b;

        return ab < c ? ab : c;
}

/* Levenshtein's distance: how many letters to insert, remove or replace. */
static unsigned distance(Str a, Str b) {
        unsigned row[STR_MISSPELLING_MAX + 1];

        if (a.len > STR_MISSPELLING_MAX || b.len > STR_MISSPELLING_MAX)
                return STR_MISSPELLING_MAX;
        for (size_t i = 0; i <= b.len; i++)
                row[i] = (unsigned) i;
        for (size_t k = 0; k < a.len; k++) {
                unsigned diagonal = row[0];

                row[0] = (unsigned) k + 1;
                for (size_t i = 1; i <= b.len; i++) {
                        unsigned above = row[i];

                        row[i] = least(row[i - 1] + 1, above + 1, diagonal + (a.data[k] != b.data[i - 1]));
                        diagonal = above;
                }
        }
        return row[b.len];
}

unsigned str_misspelling(Str word, Str name) {
        return str_has_prefix(name, word) ? 0 : distance(word, name);
}

char *str_dup(Str s) {
        char *copy = malloc(s.len + 1);

        if (!copy)
                return NULL;
        if (s.len > 0)
                memcpy(copy, s.data, s.len);
        copy[s.len] = '\0';
        return copy;
}

bool str_to_u64(Str s, uint64_t *ret) {
        uint64_t value = 0;

        if (s.len == 0)
                return false;
        for (size_t i = 0; i < s.len; i++) {
                if (s.data[i] < '0' || s.data[i] > '9')
                        return false;
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t) (s.data[i] - '0'), &value))
                        return false;
        }
        *ret = value;
        return true;
}

bool str_to_u32(Str s, uint32_t *ret) {
        uint64_t value;

        if (!str_to_u64(s, &value) || value > UINT32_MAX)
                return false;
        *ret = (uint32_t) value;
        return true;
}

uint64_t str_hash64(Str s, uint64_t seed) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;

        for (size_t i = 0; i < s.len; i++)
                hash = (hash ^ (unsigned char) s.data[i]) * UINT64_C(0x100000001b3);
        return hash;
}
