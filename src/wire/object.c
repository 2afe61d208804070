/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/object.h"

#include "wire/object-internal.h"

typedef struct OwnerReference {
        Str uid;
        bool controller;
} OwnerReference;

static const JsonField owner_fields[] = {
        JSON_FIELD(OwnerReference, uid, "uid", json_field_str),
        JSON_FIELD(OwnerReference, controller, "controller", json_field_bool),
};

void object_read_owners(JsonReader *r, Arena *arena, void *ret_str) {
        if (!json_array_begin(r))
                return;
        while (json_array_next(r)) {
                OwnerReference owner = {0};

                json_field_decode(r, arena, owner_fields, ELEMENTSOF(owner_fields), &owner);
                if (owner.controller)
                        *(Str *) ret_str = owner.uid;
        }
}

static const JsonField condition_fields[] = {
        JSON_FIELD(ObjectCondition, type, "type", json_field_str),
        JSON_FIELD(ObjectCondition, status, "status", json_field_str),
        JSON_FIELD(ObjectCondition, reason, "reason", json_field_str),
        JSON_FIELD(ObjectCondition, message, "message", json_field_str),
        JSON_FIELD(ObjectCondition, since, "lastTransitionTime", json_field_str),
};

bool object_next_condition(JsonReader *r, Arena *arena, ObjectCondition *ret) {
        if (!json_array_next(r))
                return false;
        *ret = (ObjectCondition){0};
        json_field_decode(r, arena, condition_fields, ELEMENTSOF(condition_fields), ret);
        return true;
}

bool object_read_quantity(JsonReader *r, Arena *arena, Str *ret) {
        switch (json_peek(r)) {
        case JSON_NUMBER:
                json_raw(r, ret);
                return true;
        case JSON_NULL:
                json_skip(r);
                return false;
        default:
                json_string(r, arena, ret);
                return true;
        }
}

void object_read_amount(JsonReader *r, Arena *arena, void *ret_str) {
        Str text = {0};

        (void) object_read_quantity(r, arena, &text);
        *(Str *) ret_str = text;
}

void object_read(JsonReader *r, Arena *arena, const JsonField *fields, size_t n_fields, void *into) {
        if (json_peek(r) == JSON_NULL)
                json_fault(r, "not an object");
        else
                json_field_decode(r, arena, fields, n_fields, into);
}

int object_result(int r, const char *kind, const ObjectMeta *meta, Fault *fault) {
        if (r != JSON_E_MALFORMED)
                return r;
        if (meta->name.len == 0)
                return fault_wrap(fault, OBJECT_E_MALFORMED, "%s", kind);
        return fault_wrap(fault, OBJECT_E_MALFORMED, "%s " STR_FMT "%s" STR_FMT, kind,
                          STR_ARG(meta->namespace_), meta->namespace_.len > 0 ? "/" : "",
                          STR_ARG(meta->name));
}

int object_kind(Str json, Arena *arena, Str *ret, Fault *fault) {
        Str kind = {NULL, 0}, key;
        JsonReader reader;
        bool found = false;
        int r;

        json_init(&reader, json);
        if (json_object_begin(&reader))
                while (!found && json_object_next(&reader, &key)) {
                        found = json_key_is(key, "kind");
                        if (found)
                                json_string(&reader, arena, &kind);
                        else
                                json_skip(&reader);
                }
        if (!found || json_failed(&reader)) {
                r = json_finish(&reader, fault);
                if (r != 0)
                        return r == JSON_E_MALFORMED ? OBJECT_E_MALFORMED : r;
        }
        *ret = kind;
        return 0;
}
