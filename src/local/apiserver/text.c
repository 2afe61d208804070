/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/text.h"

#include <errno.h>

#include "wire/json.h"
#include "wire/json_write.h"

/* ---- admission of received text ---- */

typedef struct Admission {
        JsonReader reader;
        Arena *arena;
        Buf *out;
        Str *keys; /* keys of the objects around the cursor, one object after another */
        size_t n_keys, capacity;
        int r;
} Admission;

static int keys_push(Admission *a, Str key) {
        if (a->n_keys == a->capacity) {
                size_t capacity = a->capacity > 0 ? a->capacity * 2 : 64;
                Str *keys = reallocarray(a->keys, capacity, sizeof *keys);

                if (!keys)
                        return -ENOMEM;
                a->keys = keys;
                a->capacity = capacity;
        }
        a->keys[a->n_keys++] = key;
        return 0;
}

static int compare_keys(const void *a, const void *b) {
        return str_compare(*(const Str *) a, *(const Str *) b);
}

static bool has_duplicates(Str *keys, size_t n) {
        enum { FEW = 12 }; /* for fewer members, comparing all pairs is cheaper than sorting */

        if (n > FEW)
                qsort(keys, n, sizeof *keys, compare_keys);
        for (size_t i = 1; i < n; i++)
                for (size_t j = n > FEW ? i - 1 : 0; j < i; j++)
                        if (str_eq(keys[i], keys[j]))
                                return true;
        return false;
}

static void admit_value(Admission *a, bool quantity);

/* Writes the key in its shortest form: escapes only where json_write_quoted() needs them. */
static Str admit_key(Admission *a, Str raw) {
        size_t start = a->out->len;

        if (memchr(raw.data, '\\', raw.len)) {
                JsonReader r;
                Str plain = {NULL, 0};

                /* the key with its quotes */
                json_init(&r, (Str){raw.data - 1, raw.len + 2});
                json_string(&r, a->arena, &plain);
                json_write_quoted(a->out, plain);
                a->r = buf_result(a->out);
                if (a->r < 0)
                        return raw;
                raw = arena_str(a->arena, (Str){a->out->data + start + 1, a->out->len - start - 2});
        } else {
                buf_append_char(a->out, '"');
                buf_append_str(a->out, raw);
                buf_append_char(a->out, '"');
        }
        buf_append_char(a->out, ':');
        return raw;
}

static void admit_object(Admission *a, bool quantities) {
        size_t base = a->n_keys;
        Str key;

        if (!json_object_begin(&a->reader))
                return;
        buf_append_char(a->out, '{');
        while (a->r == 0 && json_object_next(&a->reader, &key)) {
                if (a->n_keys > base)
                        buf_append_char(a->out, ',');
                key = admit_key(a, key);
                if (a->r == 0)
                        a->r = keys_push(a, key);
                if (a->r < 0)
                        return;
                admit_value(a, quantities || str_eq(key, STR("limits")) || str_eq(key, STR("requests")) ||
                                       str_eq(key, STR("capacity")) || str_eq(key, STR("allocatable")));
        }
        buf_append_char(a->out, '}');
        if (a->r == 0 && a->n_keys > base && has_duplicates(&a->keys[base], a->n_keys - base))
                json_fault(&a->reader, "a key stands twice in the object that ends here");
        a->n_keys = base;
}

static void admit_array(Admission *a) {
        bool more = false;

        if (!json_array_begin(&a->reader))
                return;
        buf_append_char(a->out, '[');
        while (a->r == 0 && json_array_next(&a->reader)) {
                if (more)
                        buf_append_char(a->out, ',');
                more = true;
                admit_value(a, false);
        }
        buf_append_char(a->out, ']');
}

/* Objects become parts of events and lists, so they must be less deep than our readers allow. */
enum { ADMIT_DEPTH_MAX = JSON_MAX_DEPTH - 28 };

static void admit_value(Admission *a, bool quantity) {
        JsonType type = json_peek(&a->reader);
        bool quoted = quantity && type == JSON_NUMBER;
        Str raw = {NULL, 0};

        if (a->reader.depth > ADMIT_DEPTH_MAX)
                json_fault(&a->reader, "nested too deeply");
        if (type == JSON_OBJECT) {
                admit_object(a, quantity);
                return;
        }
        if (type == JSON_ARRAY) {
                admit_array(a);
                return;
        }
        json_raw(&a->reader, &raw);
        if (quoted)
                buf_append_char(a->out, '"');
        buf_append_str(a->out, raw);
        if (quoted)
                buf_append_char(a->out, '"');
}

int store_admit(Str body, Buf *out, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Admission a = {.arena = &arena, .out = out};
        int r;

        json_init(&a.reader, body);
        admit_value(&a, false);
        free(a.keys);
        if (a.r < 0)
                return a.r;
        r = json_finish(&a.reader, fault);
        if (r < 0)
                return r;
        return r > 0 ? STORE_TEXT_E_MALFORMED : buf_result(out);
}

/* ---- reading ---- */

bool store_is_object(Str value) {
        return value.len > 0 && value.data[0] == '{';
}

bool store_is_null(Str value) {
        return str_is_empty(value) || str_eq(value, STR("null"));
}

Str store_member(Str object, const char *key) {
        Str found = {NULL, 0}, k, wanted = str_from(key);
        JsonReader r;

        if (!store_is_object(object))
                return found;
        json_init(&r, object);
        (void) json_object_begin(&r);
        while (json_object_next(&r, &k)) {
                if (str_eq(k, wanted)) { /* admitted keys are plain and unique */
                        json_raw(&r, &found);
                        return found;
                }
                json_skip(&r);
        }
        return found;
}

Str store_path(Str object, const char *dotted) {
        Str rest = str_from(dotted);

        while (rest.len > 0 && object.len > 0) {
                Str step = str_split(&rest, '.');
                char key[64];

                if (step.len >= sizeof key)
                        return (Str){NULL, 0};
                memcpy(key, step.data, step.len);
                key[step.len] = '\0';
                object = store_member(object, key);
        }
        return object;
}

Str store_string(Str value, Arena *arena) {
        Str plain = {NULL, 0};
        JsonReader r;

        if (value.len < 2 || value.data[0] != '"')
                return plain;
        if (!memchr(value.data, '\\', value.len))
                return (Str){value.data + 1, value.len - 2};
        json_init(&r, value);
        json_string(&r, arena, &plain);
        return plain;
}

int store_members(Str object, Arena *arena, StoreMember **ret, size_t *ret_n) {
        StoreMember *members = NULL;
        size_t n = 0, capacity = 0;
        JsonReader r;
        Str key;

        json_init(&r, store_is_object(object) ? object : STR("{}"));
        (void) json_object_begin(&r);
        while (json_object_next(&r, &key)) {
                if (n == capacity) {
                        StoreMember *larger = arena_new(arena, StoreMember, capacity > 0 ? capacity * 2 : 8);

                        if (!larger)
                                return -ENOMEM;
                        if (n > 0)
                                memcpy(larger, members, n * sizeof *members);
                        members = larger;
                        capacity = capacity > 0 ? capacity * 2 : 8;
                }
                members[n].key = key;
                json_raw(&r, &members[n++].value);
        }
        *ret = members;
        *ret_n = n;
        return 0;
}

/* ---- the server's part of metadata ---- */

static bool is_server_owned(Str key) {
        static const Str owned[] = {
                STR("resourceVersion"),   STR("name"),
                STR("namespace"),         STR("uid"),
                STR("creationTimestamp"), STR("deletionTimestamp"),
                STR("selfLink"),          STR("deletionGracePeriodSeconds"),
                STR("managedFields"),
        };

        for (size_t i = 0; i < ELEMENTSOF(owned); i++)
                if (str_eq(key, owned[i]))
                        return true;
        return false;
}

void store_identity(Str object, Arena *arena, StoreIdentity *ret) {
        Str metadata = store_member(object, "metadata");

        *ret = (StoreIdentity){
                .name = store_string(store_member(metadata, "name"), arena),
                .namespace_ = store_string(store_member(metadata, "namespace"), arena),
                .uid = store_string(store_member(metadata, "uid"), arena),
                .created = store_string(store_member(metadata, "creationTimestamp"), arena),
                .deletion = store_string(store_member(metadata, "deletionTimestamp"), arena),
        };
        /* absent: 0 */
        (void) str_to_u64(store_member(metadata, "deletionGracePeriodSeconds"), &ret->grace);
}

uint64_t store_text_version(Str object) {
        Str value = store_path(object, "metadata.resourceVersion");
        uint64_t version = 0;

        if (value.len > 2)
                /* not a number: 0 */
                (void) str_to_u64((Str){value.data + 1, value.len - 2}, &version);
        return version;
}

/* ---- writing ---- */

#define METADATA_HEAD "\"metadata\":{\"resourceVersion\":\""

static void write_string(Buf *out, const char *key, Str value) {
        if (str_is_empty(value))
                return;
        buf_appendf(out, ",\"%s\":", key);
        json_write_quoted(out, value);
}

/* Writes the members of an object that the filter does not leave out, each after a comma. */
static void write_rest(Buf *out, Str object, bool (*leave_out)(Str key)) {
        JsonReader r;
        Str key, value;

        if (!store_is_object(object))
                return;
        json_init(&r, object);
        (void) json_object_begin(&r);
        while (json_object_next(&r, &key)) {
                value = (Str){NULL, 0};
                json_raw(&r, &value);
                if (leave_out(key))
                        continue;
                buf_append(out, ",\"", 2);
                buf_append_str(out, key);
                buf_append(out, "\":", 2);
                buf_append_str(out, value);
        }
}

static bool is_composed(Str key) {
        return str_eq(key, STR("kind")) || str_eq(key, STR("apiVersion")) || str_eq(key, STR("metadata")) ||
               str_eq(key, STR("status"));
}

void store_compose(const StoreKind *kind, uint64_t version, const StoreIdentity *id, Str metadata, Str base,
                   Str status, Buf *out) {
        buf_append_str(out, kind->head);
        buf_append_str(out, STR(METADATA_HEAD));
        buf_append_u64(out, version);
        buf_append_char(out, '"');
        write_string(out, "name", id->name);
        write_string(out, "namespace", id->namespace_);
        write_string(out, "uid", id->uid);
        write_string(out, "creationTimestamp", id->created);
        if (!str_is_empty(id->deletion)) {
                write_string(out, "deletionTimestamp", id->deletion);
                buf_append_str(out, STR(",\"deletionGracePeriodSeconds\":"));
                buf_append_u64(out, id->grace);
        }
        write_rest(out, metadata, is_server_owned);
        buf_append_char(out, '}');
        write_rest(out, base, is_composed);
        if (!store_is_null(status)) {
                buf_append_str(out, STR(",\"status\":"));
                buf_append_str(out, status);
        }
        buf_append_char(out, '}');
}

/* The part of a stored text after the digits of resourceVersion. */
static Str behind_version(const StoreKind *kind, Str text) {
        size_t at = kind->head.len + sizeof METADATA_HEAD - 1;

        while (text.data[at] != '"')
                at++;
        return (Str){text.data + at, text.len - at};
}

bool store_same_but_version(const StoreKind *kind, Str a, Str b) {
        return str_eq(behind_version(kind, a), behind_version(kind, b));
}

void store_renumber(const StoreKind *kind, Str text, uint64_t version, Buf *out) {
        buf_append(out, text.data, kind->head.len + sizeof METADATA_HEAD - 1);
        buf_append_u64(out, version);
        buf_append_str(out, behind_version(kind, text));
}
