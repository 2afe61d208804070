/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/field_managers.h"

#include <stddef.h>

#include "wire/json_field.h"
#include "wire/pod.h"

typedef struct Search {
        uint32_t keys;
        Str except;
        FieldManager best;
} Search;

typedef struct Entry {
        Str name, operation, time, subresource;
        uint32_t owned; /* bit mask of the system keys that it owns */
} Entry;

static bool is_field(Str raw, Str key) {
        return raw.len == key.len + 2 && raw.data[0] == 'f' && raw.data[1] == ':' &&
               str_eq((Str){raw.data + 2, raw.len - 2}, key);
}

static void read_owned(JsonReader *r, Arena *arena, void *ret_entry) {
        Entry *entry = ret_entry;
        Str key;

        JSON_EACH_MEMBER(r, &key) {
                for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++)
                        if (is_field(key, pod_system_key_names[i]))
                                entry->owned |= UINT32_C(1) << i;
                json_skip(r);
        }
}

static const JsonField metadata_fields[] = {JSON_NESTED("f:annotations", read_owned)};
JSON_DECODER(read_metadata, metadata_fields)

static const JsonField set_fields[] = {JSON_NESTED("f:metadata", read_metadata)};
JSON_DECODER(read_set, set_fields)

static const JsonField entry_fields[] = {
        JSON_FIELD(Entry, name, "manager", json_field_str),
        JSON_FIELD(Entry, operation, "operation", json_field_str),
        JSON_FIELD(Entry, time, "time", json_field_str),
        JSON_FIELD(Entry, subresource, "subresource", json_field_str),
        JSON_NESTED("fieldsV1", read_set),
};

/* Whether a is later than b, both metav1.Time (RFC 3339 in UTC, whole seconds): the order of the
 * texts is the order in time. */
static bool is_later(Str a, Str b) {
        size_t n = a.len < b.len ? a.len : b.len;
        int order = n > 0 ? memcmp(a.data, b.data, n) : 0;

        return order != 0 ? order > 0 : a.len >= b.len;
}

static void consider(Search *s, const Entry *e) {
        bool owns = (e->owned & s->keys) != 0;

        if (str_is_empty(e->name) ||
            (!owns && (s->best.owns || !str_is_empty(e->subresource) || str_eq(e->name, s->except))))
                return;
        if (owns == s->best.owns && !str_is_empty(s->best.name) && !is_later(e->time, s->best.time))
                return;
        s->best = (FieldManager){e->name, e->operation, e->time, owns};
}

static void read_entries(JsonReader *r, Arena *arena, void *ret_search) {
        JSON_EACH_ELEMENT(r) {
                Entry entry = {0};

                json_field_decode(r, arena, entry_fields, ELEMENTSOF(entry_fields), &entry);
                if (!json_failed(r))
                        consider(ret_search, &entry);
        }
}

static const JsonField pod_metadata_fields[] = {JSON_NESTED("managedFields", read_entries)};
JSON_DECODER(read_pod_metadata, pod_metadata_fields)

static const JsonField pod_fields[] = {JSON_NESTED("metadata", read_pod_metadata)};

int field_managers_last(Str pod, uint32_t keys, Str except, Arena *arena, FieldManager *ret, Fault *fault) {
        Search s = {.keys = keys, .except = except};
        int e = json_field_read(pod, arena, pod_fields, ELEMENTSOF(pod_fields), &s, fault);

        if (e != 0)
                return e < 0 ? e : FIELD_MANAGERS_E_MALFORMED;
        *ret = s.best;
        return 0;
}
