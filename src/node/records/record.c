/* SPDX-License-Identifier: Apache-2.0 */

/* One record and its text:
 *
 *     {"uid":"...","namespace":"default","name":"a","assumeTime":1,
 *      "containers":[{"name":"main","init":false,"started":true,"mem":["3-0","3-1"],"core":[]}]}
 *
 * "sizeMem", "sizeCore" and "permitMem" are there where they are not 0. */

#include <errno.h>
#include <stddef.h>

#include "node/records/records.h"
#include "wire/json_field.h"
#include "wire/json_write.h"

static const char *const kind_keys[] = {[DEVICE_MEM] = "mem", [DEVICE_CORE] = "core"};

enum { CONTAINERS_MAX = 2048, TEXT_MAX = 253 };

Record *record_free(Record *record) {
        if (!record)
                return NULL;
        for (size_t i = 0; i < record->n_containers; i++) {
                free(record->containers[i].name);
                for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                        device_set_done(&record->containers[i].given[kind]);
        }
        free(record->containers);
        free(record->uid);
        free(record->namespace_);
        free(record->name);
        free(record);
        return NULL;
}

const RecordContainer *record_container(const Record *record, Str name) {
        for (size_t i = 0; i < record->n_containers; i++)
                if (str_eq(str_from(record->containers[i].name), name))
                        return &record->containers[i];
        return NULL;
}

void record_set_started(Record *record, Str container, bool started) {
        for (size_t i = 0; i < record->n_containers; i++) {
                RecordContainer *c = &record->containers[i];

                if (!str_eq(str_from(c->name), container) || c->started == started)
                        continue;
                c->started = started;
                record->saved = false;
        }
}

void record_set_size(Record *record, Str container, uint32_t mem, uint32_t core) {
        for (size_t i = 0; i < record->n_containers; i++) {
                RecordContainer *c = &record->containers[i];

                if (!str_eq(str_from(c->name), container) || (c->size_mem == mem && c->size_core == core))
                        continue;
                c->size_mem = mem;
                c->size_core = core;
                record->saved = false;
        }
}

void record_set_permit(Record *record, Str container, uint32_t mem) {
        for (size_t i = 0; i < record->n_containers; i++) {
                RecordContainer *c = &record->containers[i];

                if (!str_eq(str_from(c->name), container) || c->permit_mem == mem)
                        continue;
                c->permit_mem = mem;
                record->saved = false;
        }
}

uint32_t record_mem_above(const RecordContainer *c, uint32_t card) {
        uint32_t n = device_set_count_cards(&c->given[DEVICE_MEM]);
        uint32_t count = device_set_count(&c->given[DEVICE_MEM], card);
        uint32_t most = c->size_mem > c->permit_mem ? c->size_mem : c->permit_mem;

        return count > 0 && most / n > count ? most / n - count : 0;
}

bool record_has_started(const Record *record) {
        for (size_t i = 0; i < record->n_containers; i++)
                if (record->containers[i].started)
                        return true;
        return false;
}

void record_set_assume(Record *record, uint64_t assume) {
        if (record->assume > 0 || assume == 0)
                return;
        record->assume = assume;
        record->saved = false;
}

bool record_touches(const Record *record, DeviceKind kind, const DeviceSet *set) {
        for (size_t i = 0; i < record->n_containers; i++)
                if (device_set_touches(&record->containers[i].given[kind], set))
                        return true;
        return false;
}

/* ---- writing ---- */

static void write_set(JsonWriter *w, const char *key, const DeviceSet *set, DeviceKind kind) {
        char text[DEVICE_TEXT_MAX];

        json_write_array(w, key);
        for (size_t i = 0; i < set->n; i++) {
                device_format(set->ids[i], kind, text);
                json_write_text(w, NULL, text);
        }
        json_write_array_end(w);
}

void record_write(const Record *record, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "uid", record->uid);
        json_write_text(&w, "namespace", record->namespace_);
        json_write_text(&w, "name", record->name);
        if (record->assume > 0)
                json_write_u64(&w, "assumeTime", record->assume);
        json_write_array(&w, "containers");
        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *c = &record->containers[i];

                json_write_object(&w, NULL);
                json_write_text(&w, "name", c->name);
                json_write_bool(&w, "init", c->init);
                json_write_bool(&w, "started", c->started);
                if (c->size_mem > 0)
                        json_write_u64(&w, "sizeMem", c->size_mem);
                if (c->size_core > 0)
                        json_write_u64(&w, "sizeCore", c->size_core);
                if (c->permit_mem > 0)
                        json_write_u64(&w, "permitMem", c->permit_mem);
                for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                        write_set(&w, kind_keys[kind], &c->given[kind], (DeviceKind) kind);
                json_write_object_end(&w);
        }
        json_write_array_end(&w);
        json_write_object_end(&w);
}

/* ---- reading ---- */

typedef struct ContainerText {
        Str name;
        bool init, started;
        int64_t size_mem, size_core, permit_mem;
        Str given[DEVICE_KINDS_]; /* raw arrays */
} ContainerText;

static const JsonField container_fields[] = {
        JSON_FIELD(ContainerText, name, "name", json_field_str),
        JSON_FIELD(ContainerText, init, "init", json_field_bool),
        JSON_FIELD(ContainerText, started, "started", json_field_bool),
        JSON_FIELD(ContainerText, size_mem, "sizeMem", json_field_i64),
        JSON_FIELD(ContainerText, size_core, "sizeCore", json_field_i64),
        JSON_FIELD(ContainerText, permit_mem, "permitMem", json_field_i64),
        JSON_FIELD(ContainerText, given[DEVICE_MEM], "mem", json_field_raw),
        JSON_FIELD(ContainerText, given[DEVICE_CORE], "core", json_field_raw),
};

typedef struct RecordText {
        Str uid, namespace_, name, containers;
        int64_t assume;
} RecordText;

static const JsonField record_fields[] = {
        JSON_FIELD(RecordText, uid, "uid", json_field_str),
        JSON_FIELD(RecordText, namespace_, "namespace", json_field_str),
        JSON_FIELD(RecordText, name, "name", json_field_str),
        JSON_FIELD(RecordText, assume, "assumeTime", json_field_i64),
        JSON_FIELD(RecordText, containers, "containers", json_field_raw),
};

static int read_set(Str json, DeviceKind kind, Arena *arena, DeviceSet *ret, Fault *fault) {
        size_t n = 0, room = json.len / 4 + 1; /* "0-0" with its comma is no shorter */
        Str *texts = arena_new(arena, Str, room);
        JsonReader r;
        int e;

        if (!texts)
                return -ENOMEM;
        if (str_is_empty(json))
                return 0;
        json_init(&r, json);
        if (json_array_begin(&r))
                while (json_array_next(&r)) {
                        Str text = {0};

                        json_string(&r, arena, &text);
                        if (n < room)
                                texts[n++] = text;
                }
        e = json_finish(&r, fault);
        if (e != 0)
                return e < 0 ? e : RECORD_E_MALFORMED;
        e = device_set_parse(texts, n, kind, ret, fault);
        return e > 0 ? RECORD_E_MALFORMED : e;
}

/* A size out of range counts as 0, which means the limit. */
static uint32_t size_of(int64_t number) {
        return number > 0 && number <= UINT32_MAX ? (uint32_t) number : 0;
}

static int add_container(Record *record, const ContainerText *text, Arena *arena, Fault *fault) {
        RecordContainer *c = &record->containers[record->n_containers];
        int e = 0;

        c->name = str_dup(text->name);
        c->init = text->init;
        c->started = text->started;
        c->size_mem = size_of(text->size_mem);
        c->size_core = size_of(text->size_core);
        c->permit_mem = size_of(text->permit_mem);
        record->n_containers++;
        if (!c->name)
                return -ENOMEM;
        for (int kind = 0; e == 0 && kind < DEVICE_KINDS_; kind++)
                e = read_set(text->given[kind], (DeviceKind) kind, arena, &c->given[kind], fault);
        return e;
}

static size_t count_elements(Str json) {
        size_t n = 0;
        JsonReader r;

        json_init(&r, json);
        if (json_array_begin(&r))
                while (json_array_next(&r)) {
                        json_skip(&r);
                        n++;
                }
        return n;
}

static int read_containers(Record *record, Str json, Arena *arena, Fault *fault) {
        size_t n = count_elements(json);
        JsonReader r;
        int e;

        if (n > CONTAINERS_MAX)
                return fault_set(fault, RECORD_E_MALFORMED, "%zu containers, at most %d", n, CONTAINERS_MAX);
        record->containers = calloc(n > 0 ? n : 1, sizeof *record->containers);
        if (!record->containers)
                return -ENOMEM;
        json_init(&r, json);
        if (json_array_begin(&r))
                while (json_array_next(&r)) {
                        ContainerText text = {0};

                        json_field_decode(&r, arena, container_fields, ELEMENTSOF(container_fields), &text);
                        if (json_failed(&r))
                                break;
                        e = add_container(record, &text, arena, fault);
                        if (e != 0)
                                return e;
                }
        e = json_finish(&r, fault);
        return e > 0 ? RECORD_E_MALFORMED : e;
}

static int check_text(const RecordText *t, Fault *fault) {
        if (str_is_empty(t->uid) || t->uid.len > TEXT_MAX || t->name.len > TEXT_MAX ||
            t->namespace_.len > TEXT_MAX || str_is_empty(t->containers))
                return fault_set(fault, RECORD_E_MALFORMED,
                                 "a record has uid, namespace, name (at most %d characters) and containers",
                                 TEXT_MAX);
        for (size_t i = 0; i < t->uid.len; i++)
                if (t->uid.data[i] == '/' || t->uid.data[i] == '\0')
                        return fault_set(fault, RECORD_E_MALFORMED, "the uid is no name of a file");
        return 0;
}

int record_read(Str json, Record **ret, Fault *fault) {
        _cleanup_(record_freep) Record *record = calloc(1, sizeof *record);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RecordText text = {0};
        int e;

        if (!record)
                return -ENOMEM;
        e = json_field_read(json, &arena, record_fields, ELEMENTSOF(record_fields), &text, fault);
        if (e == 0)
                e = check_text(&text, fault);
        if (e != 0)
                return e < 0 ? e : RECORD_E_MALFORMED;
        record->uid = str_dup(text.uid);
        record->namespace_ = str_dup(text.namespace_);
        record->name = str_dup(text.name);
        if (!record->uid || !record->namespace_ || !record->name)
                return -ENOMEM;
        record->assume = text.assume > 0 ? (uint64_t) text.assume : 0;
        e = read_containers(record, text.containers, &arena, fault);
        if (e != 0)
                return e;
        record->saved = true;
        *ret = TAKE_PTR(record);
        return 0;
}
