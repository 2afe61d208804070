/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/string_map.h"

/* Returns the pair with that key, and adds it when it is new. The array grows by doubling: it is
 * full when n is a power of two. */
static StringPair *pair_of(JsonReader *r, Arena *arena, StringMap *map, Str key) {
        size_t n = map->n;

        for (size_t i = 0; i < n; i++)
                if (str_eq(map->pairs[i].key, key))
                        return &map->pairs[i];
        if (n == STRING_MAP_MAX) {
                json_fault(r, "more than 1024 members");
                return NULL;
        }
        if ((n & (n - 1)) == 0) {
                StringPair *bigger = arena_new(arena, StringPair, n > 0 ? 2 * n : 1);

                if (!bigger) {
                        json_no_memory(r);
                        return NULL;
                }
                if (n > 0)
                        memcpy(bigger, map->pairs, n * sizeof *bigger);
                map->pairs = bigger;
        }
        map->pairs[n] = (StringPair){.key = key};
        map->n++;
        return &map->pairs[n];
}

void string_map_read(JsonReader *r, Arena *arena, bool numbers, StringMap *ret) {
        Str key;

        *ret = (StringMap){0};
        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key)) {
                StringPair *pair = pair_of(r, arena, ret, json_plain_key(key, arena));

                if (!pair)
                        return;
                if (numbers && json_peek(r) == JSON_NUMBER)
                        json_raw(r, &pair->value);
                else
                        json_string(r, arena, &pair->value);
        }
}

void string_map_field(JsonReader *r, Arena *arena, void *ret_map) {
        string_map_read(r, arena, false, ret_map);
}

const StringPair *string_map_find(const StringMap *map, Str key) {
        for (size_t i = 0; i < map->n; i++)
                if (str_eq(map->pairs[i].key, key))
                        return &map->pairs[i];
        return NULL;
}

bool string_map_has_all(const StringMap *map, const StringMap *wanted) {
        for (size_t i = 0; i < wanted->n; i++) {
                const StringPair *pair = string_map_find(map, wanted->pairs[i].key);

                if (!pair || !str_eq(pair->value, wanted->pairs[i].value))
                        return false;
        }
        return true;
}
