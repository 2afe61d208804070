/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/startup_taint.h"

#include <stddef.h>

#include "wire/json_field.h"

typedef struct Taints {
        bool found;
        Buf *others;
} Taints;

static const JsonField taint_fields[] = {{STR("key"), json_field_str, 0}};

/* Reads one taint twice: as text to be written again, and for its key. */
static void read_taint(JsonReader *r, Arena *arena, Taints *t) {
        Str raw = {0}, key = {0};
        JsonReader one;

        json_raw(r, &raw);
        if (json_failed(r))
                return;
        json_init(&one, raw);
        json_field_decode(&one, arena, taint_fields, ELEMENTSOF(taint_fields), &key);
        if (str_eq(key, STR(STARTUP_TAINT))) {
                t->found = true;
                return;
        }
        if (t->others->len > 1)
                buf_append_char(t->others, ',');
        buf_append_str(t->others, raw);
}

static void read_taints(JsonReader *r, Arena *arena, void *ret) {
        JSON_EACH_ELEMENT(r)
                read_taint(r, arena, ret);
}

static const JsonField spec_fields[] = {JSON_NESTED("taints", read_taints)};
JSON_DECODER(read_spec, spec_fields)

static const JsonField node_fields[] = {JSON_NESTED("spec", read_spec)};

int startup_taint_read(Str node, Arena *arena, bool *ret_found, Buf *others, Fault *fault) {
        Taints t = {.others = others};
        JsonReader r;
        int e;

        buf_append_char(others, '[');
        json_init(&r, node);
        json_field_decode(&r, arena, node_fields, ELEMENTSOF(node_fields), &t);
        buf_append_char(others, ']');
        e = json_finish(&r, fault);
        if (e == 0)
                e = buf_result(others);
        if (e == 0)
                *ret_found = t.found;
        return e;
}
