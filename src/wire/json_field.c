/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_field.h"

void json_field_decode(JsonReader *r, Arena *arena, const JsonField *fields, size_t n_fields, void *into) {
        Str key;

        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key)) {
                const JsonField *field = NULL;

                for (size_t i = 0; i < n_fields && !field; i++)
                        if (json_key_eq(key, fields[i].name))
                                field = &fields[i];
                if (field)
                        field->decode(r, arena, (char *) into + field->offset);
                else
                        json_skip(r);
        }
}

int json_field_read(Str text, Arena *arena, const JsonField *fields, size_t n_fields, void *into,
                    Fault *fault) {
        JsonReader r;

        json_init(&r, text);
        json_field_decode(&r, arena, fields, n_fields, into);
        return json_finish(&r, fault);
}

void json_field_str(JsonReader *r, Arena *arena, void *ret_str) {
        json_string(r, arena, ret_str);
}

void json_field_bool(JsonReader *r, Arena *arena, void *ret_bool) {
        json_bool(r, ret_bool);
}

void json_field_i64(JsonReader *r, Arena *arena, void *ret_i64) {
        json_i64(r, ret_i64);
}

void json_field_present(JsonReader *r, Arena *arena, void *ret_bool) {
        bool present = json_peek(r) != JSON_NULL;

        json_skip(r);
        *(bool *) ret_bool = present;
}

void json_field_raw(JsonReader *r, Arena *arena, void *ret_str) {
        json_raw(r, ret_str);
}
