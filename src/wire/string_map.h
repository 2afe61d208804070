/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Maps whose values are strings: labels, annotations, selectors. */

#include "wire/json.h"

typedef struct StringPair {
        Str key, value;
} StringPair;

typedef struct StringMap {
        StringPair *pairs;
        size_t n;
} StringMap;

enum { STRING_MAP_MAX = 1024 };

/* Reads one object (or null, which is empty) into *ret. Keys with escapes are unescaped, and a key
 * that occurs twice has its last value, as in Go. numbers: a value may also be a number, whose text
 * it becomes then, as in a list of resources. More than STRING_MAP_MAX pairs are a fault. */
void string_map_read(JsonReader *r, Arena *arena, bool numbers, StringMap *ret);

/* The same without numbers, as a decoder for json_field.h. */
void string_map_field(JsonReader *r, Arena *arena, void *ret_map);

/* The pair with this key; NULL when the map has none. */
const StringPair *string_map_find(const StringMap *map, Str key);

/* Whether each pair of `wanted` is in the map. True where it wants nothing. */
bool string_map_has_all(const StringMap *map, const StringMap *wanted);
