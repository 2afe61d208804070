/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decoding by table: name, decoder, and offset in the struct. Unknown members are skipped; wrong
 * types are faults with their path. One table per Kubernetes type keeps the decoders of pod.c and
 * node.c readable. */

#include "wire/json.h"

typedef struct JsonField {
        Str name;
        void (*decode)(JsonReader *r, Arena *arena, void *ret);
        size_t offset;
} JsonField;

#define JSON_FIELD(type, member, key, decode)                                                                \
        { STR(key), decode, offsetof(type, member) }
#define JSON_NESTED(key, decode)                                                                             \
        { STR(key), decode, 0 } /* an inner object; its members go into the same struct */

/* Reads one object (or null) into `into`, member by member. */
void json_field_decode(JsonReader *r, Arena *arena, const JsonField *fields, size_t n_fields, void *into);

/* Decoders of single values, for tables. */
void json_field_str(JsonReader *r, Arena *arena, void *ret_str);
void json_field_bool(JsonReader *r, Arena *arena, void *ret_bool);
void json_field_i64(JsonReader *r, Arena *arena, void *ret_i64);

/* *ret_bool becomes true for any value but null. The value is skipped. */
void json_field_present(JsonReader *r, Arena *arena, void *ret_bool);

void json_field_raw(JsonReader *r, Arena *arena, void *ret_str); /* the value's text */

/* Defines the decoder of an inner object, for a table of members. */
#define JSON_DECODER(name, fields)                                                                           \
        static void name(JsonReader *r, Arena *arena, void *into) {                                          \
                json_field_decode(r, arena, fields, ELEMENTSOF(fields), into);                               \
        }

/* Reads a whole text that is one object. Returns what json_finish() returns. */
int json_field_read(Str text, Arena *arena, const JsonField *fields, size_t n_fields, void *into,
                    Fault *fault);
