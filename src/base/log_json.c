/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { KEYS_MAX = 16 };

typedef struct Line {
        char *at;
        Str keys[KEYS_MAX]; /* views of the text */
        size_t n_keys;
} Line;

static void put(Line *l, const char *text, size_t n) {
        memcpy(l->at, text, n);
        l->at += n;
}

/* The length of the UTF-8 sequence at the front of s (RFC 3629), or 0 for bytes that are none. */
static size_t sequence_length(Str s) {
        static const struct {
                uint8_t low, high, second_low, second_high;
                size_t n;
        } forms[] = {
                {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
        };
        const uint8_t *b = (const uint8_t *) s.data;

        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
                if (b[0] < forms[i].low || b[0] > forms[i].high)
                        continue;
                if (forms[i].n > s.len ||
                    (forms[i].n > 1 && (b[1] < forms[i].second_low || b[1] > forms[i].second_high)))
                        return 0;
                for (size_t k = 2; k < forms[i].n; k++)
                        if (b[k] < 0x80 || b[k] > 0xbf)
                                return 0;
                return forms[i].n;
        }
        return 0;
}

static void put_string(Line *l, Str s) {
        put(l, "\"", 1);
        while (s.len > 0) {
                size_t n = sequence_length(s);
                unsigned char c = (unsigned char) s.data[0];

                if (n == 0)
                        put(l, "\\ufffd", 6);
                else if (c == '"' || c == '\\')
                        put(l, (char[]){'\\', (char) c}, 2);
                else if (c < ' ' || c == 0x7f)
                        l->at += snprintf(l->at, 7, "\\u%04x", c);
                else
                        put(l, s.data, n);
                n += n == 0;
                s.data += n;
                s.len -= n;
        }
        put(l, "\"", 1);
}

/* The key of a word KEY=VALUE; empty when the word has none. */
static Str key_of(Str word) {
        size_t n = 0;

        while (n < word.len && strchr("abcdefghijklmnopqrstuvwxyz0123456789-_", word.data[n]))
                n++;
        return (Str){word.data, n < word.len && word.data[n] == '=' ? n : 0};
}

/* Whether the word's key is to become a field: there is one, it is new, and fewer than KEYS_MAX are
 * known. Remembers it then. */
static bool is_new(Line *l, Str key) {
        if (key.len == 0 || l->n_keys == KEYS_MAX)
                return false;
        for (size_t i = 0; i < l->n_keys; i++)
                if (str_eq(l->keys[i], key))
                        return false;
        l->keys[l->n_keys++] = key;
        return true;
}

static void put_field(Line *l, Str word) {
        Str key = key_of(word), value = {word.data + key.len + 1, word.len - key.len - 1};

        if (value.len > 0 && memchr(",:;", value.data[value.len - 1], 3))
                value.len--;
        put(l, ",", 1);
        put_string(l, key);
        put(l, ":", 1);
        put_string(l, value);
}

size_t log_json_format(char *ret, size_t size, const char *time, const char *level, const char *text) {
        Line l = {.at = ret, .keys = {STR("time"), STR("level"), STR("message")}, .n_keys = 3};
        Str rest = str_from(text);

        if (size < LOG_JSON_SIZE(rest.len) + strlen(time) + strlen(level))
                return 0;
        l.at += snprintf(l.at, size, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":", time, level);
        put_string(&l, rest);
        while (rest.len > 0) {
                Str word = str_split(&rest, ' ');

                if (is_new(&l, key_of(word)))
                        put_field(&l, word);
        }
        put(&l, "}\n", 2);
        return (size_t) (l.at - ret);
}
