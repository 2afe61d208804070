/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy_spec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/quantity.h"
#include "scheduler/label_syntax.h"
#include "share/fault_join.h"
#include "wire/annotation.h"
#include "wire/object-internal.h"
#include "wire/pod.h"

#define TIMEOUT_DEFAULT (UINT64_C(15) * 60)

enum { SHOWN = 48, YEAR = 366 * 24 * 3600 };

/* The texts of a unit before they are judged. */
typedef struct UnitDraft {
        Str resource;
        bool has_selector, has_max;
        StringMap selects, amounts, labels, annotations;
        int64_t max;
} UnitDraft;

typedef struct Draft {
        PolicySpec spec;
        Arena *arena;
        Str spec_text, strategy, preempt, next, timeout;
        UnitDraft *units;
} Draft;

/* ---- rules ---- */

_printf_(2, 3) static void complain(Fault *list, const char *format, ...) {
        Fault why = FAULT_NULL;
        va_list args;

        va_start(args, format);
        (void) vsnprintf(why.text, sizeof why.text, format, args);
        va_end(args);
        fault_join(list, &why);
}

static bool ends_domain(Str domain, Str end) {
        if (domain.len < end.len || memcmp(domain.data + domain.len - end.len, end.data, end.len) != 0)
                return false;
        return domain.len == end.len || domain.data[domain.len - end.len - 1] == '.';
}

bool policy_spec_key_is_reserved(Str key) {
        static const Str domains[] = {STR("kubernetes.io"), STR("k8s.io"), STR("aliquot.dev")};
        const char *slash = key.len > 0 ? memchr(key.data, '/', key.len) : NULL;
        Str domain = {key.data, slash ? (size_t) (slash - key.data) : 0};

        for (size_t i = 0; i < ELEMENTSOF(domains); i++)
                if (ends_domain(domain, domains[i]))
                        return true;
        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++)
                if (str_eq(key, pod_system_key_names[i]))
                        return true;
        return str_eq(key, STR(LABEL_POD_COUNT));
}

static bool unit_of_time(Str *rest, double *ret_seconds) {
        static const struct {
                Str name;
                double seconds;
        } units[] = {{STR("ns"), 1e-9}, {STR("us"), 1e-6}, {STR("ms"), 1e-3},
                     {STR("s"), 1},     {STR("m"), 60},    {STR("h"), 3600}};

        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (str_has_prefix(*rest, units[i].name)) {
                        *rest = (Str){rest->data + units[i].name.len, rest->len - units[i].name.len};
                        *ret_seconds = units[i].seconds;
                        return true;
                }
        return false;
}

/* Digits with one point at most. */
static bool number_of_time(Str *rest, double *ret) {
        double value = 0, place = 0;
        size_t i = 0, digits = 0;

        for (; i < rest->len; i++) {
                char c = rest->data[i];

                if (c == '.' && place == 0) {
                        place = 1;
                        continue;
                }
                if (c < '0' || c > '9')
                        break;
                digits++;
                value = place > 0 ? value + (c - '0') * (place /= 10) : value * 10 + (c - '0');
        }
        *rest = (Str){rest->data + i, rest->len - i};
        *ret = value;
        return digits > 0;
}

bool policy_spec_duration(Str text, uint64_t *ret_seconds) {
        double sum = 0, number, unit;

        if (str_is_empty(text))
                return false;
        if (str_eq(text, STR("0"))) {
                *ret_seconds = 0;
                return true;
        }
        while (!str_is_empty(text)) {
                if (!number_of_time(&text, &number) || !unit_of_time(&text, &unit))
                        return false;
                sum += number * unit;
                if (!(sum <= YEAR))
                        return false;
        }
        *ret_seconds = (uint64_t) sum;
        return true;
}

uint64_t policy_spec_time(Str text) {
        struct tm tm = {0};
        char copy[sizeof "2026-11-21T00:00:00"];
        time_t t;

        if (text.len < sizeof copy - 1)
                return 0;
        memcpy(copy, text.data, sizeof copy - 1);
        copy[sizeof copy - 1] = '\0';
        if (!strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm))
                return 0;
        t = timegm(&tm);
        return t > 0 ? (uint64_t) t : 0;
}

/* ---- judging ---- */

/* The written values, and the number of the one that the text is; n: none. */
static size_t choice(Str text, const char *const *names, size_t n) {
        size_t i = 0;

        while (i < n && !str_eq(text, str_from(names[i])))
                i++;
        return i;
}

static void judge_strategy(Draft *d) {
        if (!str_is_empty(d->strategy) && !str_eq(d->strategy, STR("prefer")))
                complain(&d->spec.wrong, "spec.strategy is \"%.*s\", must be prefer",
                         STR_CUT(d->strategy, SHOWN));
}

static void judge_preempt(Draft *d) {
        static const char *const names[] = {"", "AfterAllUnits", "BeforeNextUnit"};
        size_t i = choice(d->preempt, names, ELEMENTSOF(names));

        if (i == ELEMENTSOF(names))
                complain(&d->spec.wrong,
                         "spec.preemptPolicy is \"%.*s\", must be AfterAllUnits or BeforeNextUnit",
                         STR_CUT(d->preempt, SHOWN));
        d->spec.preempts_before_next = i == 2;
}

static void judge_next(Draft *d) {
        static const char *const names[] = {
                "",
                "LackResourceOrExceedMax",
                "ExceedMax",
                "LackResourceAndNoTerminating",
                "LackResourceAndNoterminating", /* the documents have both */
                "TimeoutOrExceedMax",
        };
        static const PolicyNext values[] = {
                POLICY_NEXT_LACK_OR_MAX,
                POLICY_NEXT_LACK_OR_MAX,
                POLICY_NEXT_MAX,
                POLICY_NEXT_LACK_AND_NO_TERMINATING,
                POLICY_NEXT_LACK_AND_NO_TERMINATING,
                POLICY_NEXT_TIMEOUT_OR_MAX,
        };
        PolicySpec *s = &d->spec;
        size_t i = choice(d->next, names, ELEMENTSOF(names));

        if (i == ELEMENTSOF(names)) {
                complain(&s->wrong,
                         "spec.whenTryNextUnits.policy is \"%.*s\", must be LackResourceOrExceedMax, "
                         "ExceedMax, LackResourceAndNoTerminating or TimeoutOrExceedMax",
                         STR_CUT(d->next, SHOWN));
                return;
        }
        s->next = values[i];
        s->timeout = TIMEOUT_DEFAULT;
        if (!str_is_empty(d->timeout) && !policy_spec_duration(d->timeout, &s->timeout))
                complain(&s->wrong,
                         "spec.whenTryNextUnits.timeout is \"%.*s\", must be a duration of at most a year, "
                         "such as 15m",
                         STR_CUT(d->timeout, SHOWN));
        if (!str_is_empty(d->timeout) && s->next != POLICY_NEXT_TIMEOUT_OR_MAX)
                complain(&s->ignored,
                         "spec.whenTryNextUnits.timeout has an effect with TimeoutOrExceedMax alone");
}

/* Amounts of maxResources. */
static int judge_amounts(Draft *d, size_t at, PolicyUnit *u) {
        const StringMap *map = &d->units[at].amounts;

        u->max_amounts = arena_new(d->arena, PolicyAmount, map->n + 1);
        if (!u->max_amounts)
                return -ENOMEM;
        for (size_t i = 0; i < map->n; i++) {
                PolicyAmount *a = &u->max_amounts[u->n_max_amounts];

                a->name = map->pairs[i].key;
                if (quantity_parse_milli(map->pairs[i].value, &a->milli))
                        u->n_max_amounts++;
                else
                        complain(&d->spec.wrong,
                                 "spec.units[%zu].maxResources[%.*s] is \"%.*s\", must be a quantity", at,
                                 STR_CUT(a->name, SHOWN), STR_CUT(map->pairs[i].value, SHOWN));
        }
        return 0;
}

static void judge_keys(Draft *d, size_t at, const char *field, const StringMap *map) {
        for (size_t i = 0; i < map->n; i++)
                if (policy_spec_key_is_reserved(map->pairs[i].key))
                        complain(&d->spec.wrong,
                                 "spec.units[%zu].%s has the key %.*s, which belongs to Kubernetes or to "
                                 "aliquot",
                                 at, field, STR_CUT(map->pairs[i].key, SHOWN));
}

/* A key that the API server refuses would make each Binding fail. path: "spec.selector". */
static void judge_key(Draft *d, const char *path, Str key, bool good) {
        if (!good)
                complain(&d->spec.wrong, "%s has the key \"%.*s\", " LABEL_SYNTAX_KEY_RULE, path,
                         STR_CUT(key, SHOWN));
}

static void judge_label_syntax(Draft *d, const char *path, const StringMap *map) {
        for (size_t i = 0; i < map->n; i++) {
                const StringPair *p = &map->pairs[i];

                judge_key(d, path, p->key, label_syntax_is_key(p->key));
                if (!label_syntax_is_value(p->value))
                        complain(&d->spec.wrong, "%s[%.*s] is \"%.*s\", " LABEL_SYNTAX_VALUE_RULE, path,
                                 STR_CUT(p->key, SHOWN), STR_CUT(p->value, SHOWN));
        }
}

static void judge_group_keys(Draft *d) {
        for (size_t i = 0; i < d->spec.n_group_keys; i++)
                judge_key(d, "spec.matchLabelKeys", d->spec.group_keys[i],
                          label_syntax_is_key(d->spec.group_keys[i]));
}

static void judge_written_syntax(Draft *d, size_t at, const PolicyUnit *u) {
        char path[64];

        (void) snprintf(path, sizeof path, "spec.units[%zu].podLabels", at);
        judge_label_syntax(d, path, &u->labels);
        (void) snprintf(path, sizeof path, "spec.units[%zu].podAnnotations", at);
        for (size_t i = 0; i < u->annotations.n; i++)
                judge_key(d, path, u->annotations.pairs[i].key,
                          label_syntax_is_annotation_key(u->annotations.pairs[i].key));
}

/* The label that makes pods wait is taken out of those that are written. */
static int judge_labels(Draft *d, size_t at, PolicyUnit *u) {
        const StringMap *map = &d->units[at].labels;

        u->labels.pairs = arena_new(d->arena, StringPair, map->n + 1);
        if (!u->labels.pairs)
                return -ENOMEM;
        for (size_t i = 0; i < map->n; i++)
                if (str_eq(map->pairs[i].key, STR(POLICY_LABEL_WAITS)))
                        u->waits = str_eq(map->pairs[i].value, STR("true"));
                else
                        u->labels.pairs[u->labels.n++] = map->pairs[i];
        judge_keys(d, at, "podLabels", &u->labels);
        judge_keys(d, at, "podAnnotations", &u->annotations);
        judge_written_syntax(d, at, u);
        return 0;
}

static int judge_resource(Draft *d, size_t at, PolicyUnit *u) {
        static const char *const names[] = {"", "ecs", "elastic", "eci", "acs"};
        static const StringPair virtual_node = {.key = STR("type"), .value = STR("virtual-kubelet")};
        size_t i = choice(u->resource, names, ELEMENTSOF(names));
        bool is_virtual = i >= 3;

        if (i == 0)
                u->resource = STR("ecs");
        if (i == ELEMENTSOF(names))
                complain(&d->spec.wrong,
                         "spec.units[%zu].resource is \"%.*s\", must be ecs, eci, elastic or acs", at,
                         STR_CUT(u->resource, SHOWN));
        if (u->selects.n > 0)
                return 0;
        u->any_node = !is_virtual;
        if (!is_virtual)
                return 0;
        u->selects.pairs = arena_new(d->arena, StringPair, 1);
        if (!u->selects.pairs)
                return -ENOMEM;
        u->selects.pairs[u->selects.n++] = virtual_node;
        return 0;
}

/* A map that is too large is emptied: units are looked for by it, also while the policy is not in
 * force. */
static void judge_size(Draft *d, const char *path, const char *field, StringMap *map) {
        if (map->n <= POLICY_PAIRS_MAX)
                return;
        complain(&d->spec.wrong, "%s.%s has %zu keys, must have at most %d", path, field, map->n,
                 POLICY_PAIRS_MAX);
        map->n = 0;
}

static void judge_sizes(Draft *d, size_t at) {
        UnitDraft *u = &d->units[at];
        char path[40];

        (void) snprintf(path, sizeof path, "spec.units[%zu]", at);
        judge_size(d, path, "nodeSelector", &u->selects);
        judge_size(d, path, "maxResources", &u->amounts);
        judge_size(d, path, "podLabels", &u->labels);
        judge_size(d, path, "podAnnotations", &u->annotations);
}

static int judge_unit(Draft *d, size_t at) {
        const UnitDraft *draft = &d->units[at];
        PolicyUnit *u = &d->spec.units[at];
        int r;

        judge_sizes(d, at);
        *u = (PolicyUnit){.resource = draft->resource,
                          .selects = draft->selects,
                          .has_max = draft->has_max,
                          .annotations = draft->annotations};
        if (draft->has_max && (draft->max < 0 || draft->max > INT32_MAX))
                complain(&d->spec.wrong, "spec.units[%zu].max is %lld, must be from 0 to %d", at,
                         (long long) draft->max, INT32_MAX);
        else
                u->max = (uint32_t) draft->max;
        r = judge_amounts(d, at, u);
        if (r == 0)
                r = judge_labels(d, at, u);
        return r == 0 ? judge_resource(d, at, u) : r;
}

/* Equal selectors: the later unit never gets a node. */
static void judge_shadows(Draft *d) {
        PolicySpec *s = &d->spec;

        for (size_t k = 1; k < s->n_units; k++)
                for (size_t i = 0; i < k; i++)
                        if (!s->units[i].any_node &&
                            string_map_has_all(&s->units[k].selects, &s->units[i].selects)) {
                                complain(&s->ignored,
                                         "spec.units[%zu] never gets a node: units[%zu] selects all of its "
                                         "nodes, and comes before it",
                                         k, i);
                                break;
                        }
}

static bool counts_up(const PolicySpec *s) {
        for (size_t i = 0; i < s->n_units; i++)
                if (s->units[i].has_max || s->units[i].n_max_amounts > 0)
                        return true;
        return false;
}

static void judge_counting(Draft *d) {
        PolicySpec *s = &d->spec;

        if (counts_up(s))
                return;
        if (s->n_group_keys > 0)
                complain(&s->ignored, "spec.matchLabelKeys has an effect with max or maxResources alone");
        if (s->ignores_previous)
                complain(&s->ignored, "spec.ignorePreviousPod has an effect with max or maxResources alone");
}

static int judge(Draft *d) {
        PolicySpec *s = &d->spec;

        judge_strategy(d);
        judge_preempt(d);
        judge_next(d);
        judge_size(d, "spec", "selector", &s->selector);
        judge_label_syntax(d, "spec.selector", &s->selector);
        judge_group_keys(d);
        if (s->n_units == 0)
                complain(&s->wrong, "spec.units is empty, must have from 1 to %d units", POLICY_UNITS_MAX);
        s->units = arena_new(d->arena, PolicyUnit, s->n_units + 1);
        if (!s->units)
                return -ENOMEM;
        for (size_t i = 0; i < s->n_units; i++) {
                int r = judge_unit(d, i);

                if (r < 0)
                        return r;
        }
        judge_shadows(d);
        judge_counting(d);
        s->created = policy_spec_time(s->meta.creation_timestamp);
        s->identity = str_hash64(d->spec_text, str_hash64(s->meta.uid, 0));
        return 0;
}

/* ---- decoding ---- */

static void read_max(JsonReader *r, Arena *arena, void *ret) {
        UnitDraft *u = ret;

        u->has_max = json_peek(r) != JSON_NULL;
        json_i64(r, &u->max);
}

static void read_amounts(JsonReader *r, Arena *arena, void *ret) {
        string_map_read(r, arena, true, &((UnitDraft *) ret)->amounts);
}

static const JsonField unit_fields[] = {
        JSON_FIELD(UnitDraft, resource, "resource", json_field_str),
        JSON_FIELD(UnitDraft, selects, "nodeSelector", string_map_field),
        JSON_NESTED("max", read_max),
        JSON_NESTED("maxResources", read_amounts),
        JSON_FIELD(UnitDraft, labels, "podLabels", string_map_field),
        JSON_FIELD(UnitDraft, annotations, "podAnnotations", string_map_field),
};

static void read_units(JsonReader *r, Arena *arena, void *ret) {
        Draft *d = ret;

        d->spec.n_units = 0;
        d->units = arena_new(arena, UnitDraft, POLICY_UNITS_MAX);
        if (!d->units) {
                json_no_memory(r);
                return;
        }
        if (!json_array_begin(r))
                return;
        while (json_array_next(r)) {
                if (d->spec.n_units == POLICY_UNITS_MAX) {
                        json_fault(r, "more than 32 units");
                        return;
                }
                json_field_decode(r, arena, unit_fields, ELEMENTSOF(unit_fields),
                                  &d->units[d->spec.n_units++]);
        }
}

static void read_group_keys(JsonReader *r, Arena *arena, void *ret) {
        Draft *d = ret;

        d->spec.n_group_keys = 0;
        d->spec.group_keys = arena_new(arena, Str, POLICY_KEYS_MAX);
        if (!d->spec.group_keys) {
                json_no_memory(r);
                return;
        }
        if (!json_array_begin(r))
                return;
        while (json_array_next(r)) {
                if (d->spec.n_group_keys == POLICY_KEYS_MAX) {
                        json_fault(r, "more than 16 keys");
                        return;
                }
                json_string(r, arena, &d->spec.group_keys[d->spec.n_group_keys++]);
        }
}

static const JsonField next_fields[] = {
        JSON_FIELD(Draft, next, "policy", json_field_str),
        JSON_FIELD(Draft, timeout, "timeout", json_field_str),
};
OBJECT_DECODER(read_next, next_fields)

static const JsonField spec_fields[] = {
        JSON_FIELD(Draft, spec.selector, "selector", string_map_field),
        JSON_FIELD(Draft, strategy, "strategy", json_field_str),
        JSON_NESTED("units", read_units),
        JSON_FIELD(Draft, preempt, "preemptPolicy", json_field_str),
        JSON_FIELD(Draft, spec.ignores_previous, "ignorePreviousPod", json_field_bool),
        JSON_FIELD(Draft, spec.ignores_terminating, "ignoreTerminatingPod", json_field_bool),
        JSON_NESTED("matchLabelKeys", read_group_keys),
        JSON_NESTED("whenTryNextUnits", read_next),
};

/* The names of members that no table has. With the chart's CRD the API server refuses them or drops
 * them before they are stored. */
static void note_unknown(Draft *d, Str object, const char *path, const JsonField *fields, size_t n) {
        JsonReader r;
        Str key;

        json_init(&r, object);
        if (json_peek(&r) != JSON_OBJECT || !json_object_begin(&r))
                return;
        while (json_object_next(&r, &key)) {
                size_t i = 0;

                while (i < n && !json_key_eq(key, fields[i].name))
                        i++;
                if (i == n)
                        complain(&d->spec.ignored, "%s.%.*s is not known", path, STR_CUT(key, SHOWN));
                json_skip(&r);
        }
}

static void note_unknown_of_units(Draft *d, Str list) {
        JsonReader r;
        Str unit = {NULL, 0};
        char path[40];

        json_init(&r, list);
        if (json_peek(&r) != JSON_ARRAY || !json_array_begin(&r))
                return;
        for (size_t i = 0; json_array_next(&r); i++) {
                json_raw(&r, &unit);
                if (json_failed(&r))
                        return;
                (void) snprintf(path, sizeof path, "spec.units[%zu]", i);
                note_unknown(d, unit, path, unit_fields, ELEMENTSOF(unit_fields));
        }
}

static void note_all_unknown(Draft *d) {
        JsonReader r;
        Str key, value = {NULL, 0};

        note_unknown(d, d->spec_text, "spec", spec_fields, ELEMENTSOF(spec_fields));
        json_init(&r, d->spec_text);
        if (json_peek(&r) != JSON_OBJECT || !json_object_begin(&r))
                return;
        while (json_object_next(&r, &key)) {
                json_raw(&r, &value);
                if (json_failed(&r))
                        return;
                if (json_key_is(key, "units"))
                        note_unknown_of_units(d, value);
                else if (json_key_is(key, "whenTryNextUnits"))
                        note_unknown(d, value, "spec.whenTryNextUnits", next_fields, ELEMENTSOF(next_fields));
        }
}

/* A wrong type in spec is a rule that the policy breaks. Without the rest of the object nothing
 * could be said about it to its user. */
static void read_spec(JsonReader *r, Arena *arena, void *ret) {
        Fault why = FAULT_NULL;
        JsonReader inner;
        Draft *d = ret;
        int k;

        json_raw(r, &d->spec_text);
        if (json_failed(r))
                return;
        json_init(&inner, d->spec_text);
        json_field_decode(&inner, arena, spec_fields, ELEMENTSOF(spec_fields), d);
        k = json_finish(&inner, &why);
        if (k < 0)
                json_no_memory(r);
        else if (k > 0)
                complain(&d->spec.wrong, "spec: %s", why.text);
        note_all_unknown(d);
}

static const JsonField metadata_fields[] = {
        OBJECT_META_FIELDS(PolicySpec),
        JSON_FIELD(PolicySpec, generation, "generation", json_field_i64),
};
OBJECT_DECODER(read_metadata, metadata_fields)

static const JsonField policy_fields[] = {
        JSON_FIELD(Draft, spec, "metadata", read_metadata),
        JSON_NESTED("spec", read_spec),
};

int policy_spec_decode(Str object, Arena *arena, PolicySpec *ret, Fault *fault) {
        Draft *d = arena_new(arena, Draft, 1);
        JsonReader reader;
        int r;

        if (!d)
                return -ENOMEM;
        d->arena = arena;
        d->spec.ignores_terminating = true;
        json_init(&reader, object);
        object_read(&reader, arena, policy_fields, ELEMENTSOF(policy_fields), d);
        r = json_finish(&reader, fault);
        if (r == 0 && str_is_empty(d->spec.meta.name))
                r = fault_set(fault, JSON_E_MALFORMED, "it has no name");
        if (r != 0)
                return r > 0 ? object_result(JSON_E_MALFORMED, "resourcepolicy", &d->spec.meta, fault) : r;
        r = judge(d);
        if (r < 0)
                return r;
        *ret = d->spec;
        return 0;
}
