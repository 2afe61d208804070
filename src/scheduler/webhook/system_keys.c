/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/system_keys.h"

#include <stddef.h>

#include "wire/annotation.h"
#include "wire/json_field.h"
#include "wire/resize_keys.h"

enum { VALUE_SHOWN = 64 }; /* bytes of a value that a message shows */

enum {
#define INDEX(member, key) INDEX_##member,
        POD_SYSTEM_KEYS(INDEX)
#undef INDEX
};

#define DECODER(name, fields)                                                                                \
        static void name(JsonReader *r, Arena *arena, void *ret) {                                           \
                json_field_decode(r, arena, fields, ELEMENTSOF(fields), ret);                                \
        }

static const JsonField annotation_fields[] = {
#define FIELD(member, key) JSON_FIELD(SystemKeys, values[INDEX_##member], key, json_field_str),
        POD_SYSTEM_KEYS(FIELD)
#undef FIELD
                JSON_FIELD(SystemKeys, values[SYSTEM_KEYS_POLICY], ANNOTATION_RESOURCE_POLICY,
                           json_field_str),
        JSON_FIELD(SystemKeys, values[SYSTEM_KEYS_RESIZE_MEM], ANNOTATION_RESIZE_MEM, json_field_str),
        JSON_FIELD(SystemKeys, values[SYSTEM_KEYS_RESIZE_CORE], ANNOTATION_RESIZE_CORE, json_field_str),
};
DECODER(read_annotations, annotation_fields)

static const JsonField metadata_fields[] = {
        JSON_FIELD(SystemKeys, namespace_, "namespace", json_field_str),
        JSON_FIELD(SystemKeys, name, "name", json_field_str),
        JSON_FIELD(SystemKeys, generate_name, "generateName", json_field_str),
        JSON_NESTED("annotations", read_annotations),
};
DECODER(read_metadata, metadata_fields)

static const JsonField pod_fields[] = {JSON_NESTED("metadata", read_metadata)};

int system_keys_read(Str json, Arena *arena, SystemKeys *ret, Fault *fault) {
        SystemKeys keys = {0};
        int r = json_field_read(json, arena, pod_fields, ELEMENTSOF(pod_fields), &keys, fault);

        if (r != 0)
                return r < 0 ? r : fault_wrap(fault, SYSTEM_KEYS_E_MALFORMED, "the Pod cannot be read");
        *ret = keys;
        return 0;
}

uint32_t system_keys_changed(const SystemKeys *old, const SystemKeys *now) {
        uint32_t changed = 0;

        for (size_t i = 0; i <= SYSTEM_KEYS_POLICY; i++)
                changed |= (uint32_t) !str_eq(old->values[i], now->values[i]) << i;
        return changed;
}

uint32_t system_keys_of_new(const SystemKeys *now) {
        uint32_t keys = 0;

        for (size_t i = 0; i < SYSTEM_KEYS_COUNT; i++)
                keys |= (uint32_t) !str_is_empty(now->values[i]) << i;
        return keys;
}

static Str key_name(size_t i) {
        if (i < POD_SYSTEM_KEYS_COUNT)
                return pod_system_key_names[i];
        if (i == SYSTEM_KEYS_POLICY)
                return STR(ANNOTATION_RESOURCE_POLICY);
        return i == SYSTEM_KEYS_RESIZE_MEM ? STR(ANNOTATION_RESIZE_MEM) : STR(ANNOTATION_RESIZE_CORE);
}

/* A pod with generateName has no name yet: the API server makes it after the webhooks. */
static void append_resize_warning(const SystemKeys *now, size_t i, Buf *out) {
        Str name = str_is_empty(now->name) ? now->generate_name : now->name;

        buf_appendf(out,
                    "pod %.*s/%.*s: annotation " STR_FMT
                    " resizes a running pod, and a new pod has the size of its limits; it was removed",
                    STR_CUT(now->namespace_, VALUE_SHOWN), STR_CUT(name, VALUE_SHOWN), STR_ARG(key_name(i)));
}

void system_keys_warn(const SystemKeys *now, size_t i, Buf *out) {
        if (i >= SYSTEM_KEYS_RESIZE_MEM)
                append_resize_warning(now, i, out);
        else
                buf_appendf(out, "annotation " STR_FMT " is set by the scheduler; it was removed",
                            STR_ARG(key_name(i)));
}

/* Appends the key as part of a path, in which "/" is written "~1" (RFC 6901). The keys contain no
 * "~". */
static void append_pointer(Str key, Buf *out) {
        for (size_t i = 0; i < key.len; i++)
                if (key.data[i] == '/')
                        buf_append_str(out, STR("~1"));
                else
                        buf_append_char(out, key.data[i]);
}

void system_keys_write_removal(uint32_t keys, Buf *out) {
        const char *comma = "";

        for (size_t i = 0; i < SYSTEM_KEYS_COUNT; i++) {
                if ((keys >> i & 1) == 0)
                        continue;
                buf_appendf(out, "%s{\"op\":\"remove\",\"path\":\"/metadata/annotations/", comma);
                append_pointer(key_name(i), out);
                buf_append_str(out, STR("\"}"));
                comma = ",";
        }
}

void system_keys_refuse(const SystemKeys *old, const SystemKeys *now, uint32_t changed, Str user, Buf *why) {
        size_t i = (size_t) __builtin_ctz(changed);
        Str was = old->values[i], is = now->values[i];

        buf_appendf(
                why,
                "pod " STR_FMT "/" STR_FMT ": annotation " STR_FMT
                " is \"%.*s\", must not become \"%.*s\": aliquot's scheduler and node agent write it, and "
                "user \"%.*s\" is none of the system accounts (--system-accounts)",
                STR_ARG(now->namespace_), STR_ARG(now->name), STR_ARG(key_name(i)), STR_CUT(was, VALUE_SHOWN),
                STR_CUT(is, VALUE_SHOWN), STR_CUT(user, 2 * VALUE_SHOWN));
}
