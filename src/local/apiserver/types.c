/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/types.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "local/apiserver/text.h"
#include "wire/json.h"

typedef enum Shape { SHAPE_STRING, SHAPE_INTEGER, SHAPE_OBJECT, SHAPE_STRINGS, SHAPE_MAP, SHAPE_LIST } Shape;

/* A member of an object. of: the members of its value, or of each object in it where it is a list.
 * words: the values of a string, with commas between; NULL: any. An entry without a name ends a
 * table. */
typedef struct Member {
        const char *name;
        Shape shape;
        const struct Member *of;
        const char *words;
} Member;

#define POLICIES "Always,OnFailure,Never"

static const Member requirement[] = {{"key", SHAPE_STRING, NULL},
                                     {"operator", SHAPE_STRING, NULL, "In,NotIn,Exists,DoesNotExist,Gt,Lt"},
                                     {"values", SHAPE_STRINGS, NULL},
                                     {0}};
static const Member term[] = {
        {"matchExpressions", SHAPE_LIST, requirement}, {"matchFields", SHAPE_LIST, requirement}, {0}};
static const Member node_selector[] = {{"nodeSelectorTerms", SHAPE_LIST, term}, {0}};
static const Member preferred[] = {{"weight", SHAPE_INTEGER, NULL}, {"preference", SHAPE_OBJECT, term}, {0}};
static const Member node_affinity[] = {
        {"requiredDuringSchedulingIgnoredDuringExecution", SHAPE_OBJECT, node_selector},
        {"preferredDuringSchedulingIgnoredDuringExecution", SHAPE_LIST, preferred},
        {0}};
static const Member affinity[] = {{"nodeAffinity", SHAPE_OBJECT, node_affinity}, {0}};
static const Member toleration[] = {{"key", SHAPE_STRING, NULL},
                                    {"operator", SHAPE_STRING, NULL, "Equal,Exists"},
                                    {"value", SHAPE_STRING, NULL},
                                    {"effect", SHAPE_STRING, NULL, "NoSchedule,PreferNoSchedule,NoExecute"},
                                    {"tolerationSeconds", SHAPE_INTEGER, NULL},
                                    {0}};
static const Member gate[] = {{"name", SHAPE_STRING, NULL}, {0}};
static const Member field_ref[] = {{"fieldPath", SHAPE_STRING, NULL}, {0}};
static const Member value_from[] = {{"fieldRef", SHAPE_OBJECT, field_ref}, {0}};
static const Member variable[] = {{"name", SHAPE_STRING, NULL},
                                  {"value", SHAPE_STRING, NULL},
                                  {"valueFrom", SHAPE_OBJECT, value_from},
                                  {0}};
static const Member container[] = {
        {"name", SHAPE_STRING, NULL},       {"image", SHAPE_STRING, NULL},
        {"command", SHAPE_STRINGS, NULL},   {"args", SHAPE_STRINGS, NULL},
        {"workingDir", SHAPE_STRING, NULL}, {"restartPolicy", SHAPE_STRING, NULL, POLICIES},
        {"env", SHAPE_LIST, variable},      {0}};
static const Member pod_spec[] = {
        {"nodeName", SHAPE_STRING, NULL},           {"schedulerName", SHAPE_STRING, NULL},
        {"hostname", SHAPE_STRING, NULL},           {"restartPolicy", SHAPE_STRING, NULL, POLICIES},
        {"serviceAccountName", SHAPE_STRING, NULL}, {"priorityClassName", SHAPE_STRING, NULL},
        {"priority", SHAPE_INTEGER, NULL},          {"nodeSelector", SHAPE_MAP, NULL},
        {"tolerations", SHAPE_LIST, toleration},    {"schedulingGates", SHAPE_LIST, gate},
        {"affinity", SHAPE_OBJECT, affinity},       {"initContainers", SHAPE_LIST, container},
        {"containers", SHAPE_LIST, container},      {0}};

/* v->field holds the path of the current member; `len` is its length, which each step restores. */
typedef struct Walk {
        JsonReader reader;
        StoreViolation *v;
        size_t len;
} Walk;

static int check_member(Walk *w, const Member *m);

static size_t push_field(Walk *w, const char *format, ...) _printf_(2, 3);
static size_t push_field(Walk *w, const char *format, ...) {
        size_t before = w->len, room = sizeof w->v->field - before;
        va_list args;
        int n;

        va_start(args, format);
        /* a long path is cut, because it is only for people */
        n = vsnprintf(w->v->field + before, room, format, args);
        va_end(args);
        w->len = n < 0 ? before : (size_t) n < room ? before + (size_t) n : sizeof w->v->field - 1;
        return before;
}

static int wrong_type(Walk *w, const char *expected) {
        return fault_set(&w->v->rule, STORE_VALID_E_TYPE, "must be %s", expected);
}

static int wrong_string(StoreViolation *v, JsonType found) {
        const char *what = found == JSON_BOOL     ? ", is a boolean: quote it"
                           : found == JSON_NUMBER ? ", is a number: quote it"
                                                  : "";

        return fault_set(&v->rule, STORE_VALID_E_TYPE, "must be a string%s", what);
}

int store_types_wrong_string(StoreViolation *v, Str found) {
        JsonReader r;

        json_init(&r, found);
        return wrong_string(v, json_peek(&r));
}

/* An empty string counts as absent. */
static int check_words(Walk *w, const char *words) {
        char text[32] = "", known[128] = "";
        size_t n = 0;
        Str value, rest = str_from(words);

        json_raw(&w->reader, &value);
        if (value.len <= 2)
                return 0;
        value = (Str){value.data + 1, value.len - 2}; /* none of the words has an escape */
        (void) snprintf(text, sizeof text, "%.*s", STR_CUT(value, 30));
        while (!str_is_empty(rest)) {
                Str word = str_split(&rest, ',');

                if (str_eq(value, word))
                        return 0;
                n += (size_t) snprintf(known + n, sizeof known - n, "%s\"" STR_FMT "\"", n > 0 ? ", " : "",
                                       STR_ARG(word));
        }
        w->v->reason = "FieldValueNotSupported";
        return fault_set(&w->v->rule, STORE_VALID_E_RULE, "Unsupported value: \"%s\": supported values: %s",
                         text, known);
}

static int check_members(Walk *w, const Member *of) {
        int r = 0;
        Str key;

        (void) json_object_begin(&w->reader);
        while (r == 0 && json_object_next(&w->reader, &key)) {
                const Member *m = of;
                size_t before;

                while (m->name && !json_key_is(key, m->name))
                        m++;
                if (!m->name) {
                        json_skip(&w->reader);
                        continue;
                }
                before = push_field(w, ".%s", m->name);
                r = check_member(w, m);
                if (r == 0)
                        w->len = before;
        }
        return r;
}

static int check_map(Walk *w) {
        static const Member value = {"", SHAPE_STRING, NULL};
        int r = 0;
        Str key;

        (void) json_object_begin(&w->reader);
        while (r == 0 && json_object_next(&w->reader, &key)) {
                size_t before = push_field(w, "[%.*s]", STR_CUT(key, 100));

                r = check_member(w, &value);
                if (r == 0)
                        w->len = before;
        }
        return r;
}

static int check_items(Walk *w, const Member *item) {
        size_t i = 0;
        int r = 0;

        (void) json_array_begin(&w->reader);
        for (; r == 0 && json_array_next(&w->reader); i++) {
                size_t before = push_field(w, "[%zu]", i);

                r = check_member(w, item);
                if (r == 0)
                        w->len = before;
        }
        return r;
}

static int check_member(Walk *w, const Member *m) {
        static const JsonType types[] = {
                [SHAPE_STRING] = JSON_STRING, [SHAPE_INTEGER] = JSON_NUMBER, [SHAPE_OBJECT] = JSON_OBJECT,
                [SHAPE_STRINGS] = JSON_ARRAY, [SHAPE_MAP] = JSON_OBJECT,     [SHAPE_LIST] = JSON_ARRAY,
        };
        static const char *const names[] = {
                [JSON_NUMBER] = "a whole number",
                [JSON_ARRAY] = "an array",
                [JSON_OBJECT] = "an object",
        };
        JsonType type = json_peek(&w->reader);
        int64_t number;

        if (type == JSON_NULL) { /* Go treats null as absent */
                json_skip(&w->reader);
                return 0;
        }
        if (type != types[m->shape])
                return m->shape == SHAPE_STRING ? wrong_string(w->v, type)
                                                : wrong_type(w, names[types[m->shape]]);
        switch (m->shape) {
        case SHAPE_OBJECT:
                return check_members(w, m->of);
        case SHAPE_MAP:
                return check_map(w);
        case SHAPE_STRINGS:
                return check_items(w, &(Member){"", SHAPE_STRING, NULL});
        case SHAPE_LIST:
                return check_items(w, &(Member){"", SHAPE_OBJECT, m->of});
        case SHAPE_INTEGER:
                json_i64(&w->reader, &number);
                return json_failed(&w->reader) ? wrong_type(w, names[JSON_NUMBER]) : 0;
        case SHAPE_STRING:
                if (m->words)
                        return check_words(w, m->words);
                json_skip(&w->reader);
                return 0;
        }
        return 0;
}

int store_types_check_pod_spec(Str spec, StoreViolation *ret) {
        static const Member whole = {"spec", SHAPE_OBJECT, pod_spec};
        Walk w = {.v = ret};

        if (store_is_null(spec))
                return 0;
        json_init(&w.reader, spec);
        (void) push_field(&w, "spec");
        return check_member(&w, &whole);
}

bool store_types_has(StoreTypesOf of, const char *member) {
        const Member *m = of == STORE_TYPES_CONTAINER ? container : pod_spec;

        while (m->name && strcmp(m->name, member) != 0)
                m++;
        return m->name;
}
