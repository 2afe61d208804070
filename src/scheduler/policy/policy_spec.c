/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/policy_spec.h"

#include <errno.h>
#include <stdio.h>

#include "scheduler/policy/policy_spec-internal.h"
#include "wire/object-internal.h"

static void read_max(JsonReader *r, Arena *arena, void *ret) {
        PolicyUnitDraft *u = ret;

        u->has_max = json_peek(r) != JSON_NULL;
        json_i64(r, &u->max);
}

static void read_amounts(JsonReader *r, Arena *arena, void *ret) {
        string_map_read(r, arena, true, &((PolicyUnitDraft *) ret)->amounts);
}

static const JsonField unit_fields[] = {
        JSON_FIELD(PolicyUnitDraft, resource, "resource", json_field_str),
        JSON_FIELD(PolicyUnitDraft, selects, "nodeSelector", string_map_field),
        JSON_NESTED("max", read_max),
        JSON_NESTED("maxResources", read_amounts),
        JSON_FIELD(PolicyUnitDraft, labels, "podLabels", string_map_field),
        JSON_FIELD(PolicyUnitDraft, annotations, "podAnnotations", string_map_field),
};

static void read_units(JsonReader *r, Arena *arena, void *ret) {
        PolicyDraft *d = ret;

        d->spec.n_units = 0;
        d->units = arena_new(arena, PolicyUnitDraft, POLICY_UNITS_MAX);
        if (!d->units) {
                json_no_memory(r);
                return;
        }
        JSON_EACH_ELEMENT(r) {
                if (d->spec.n_units == POLICY_UNITS_MAX) {
                        json_fault(r, "more than 32 units");
                        return;
                }
                json_field_decode(r, arena, unit_fields, ELEMENTSOF(unit_fields),
                                  &d->units[d->spec.n_units++]);
        }
}

static void read_group_keys(JsonReader *r, Arena *arena, void *ret) {
        PolicyDraft *d = ret;

        d->spec.n_group_keys = 0;
        d->spec.group_keys = arena_new(arena, Str, POLICY_KEYS_MAX);
        if (!d->spec.group_keys) {
                json_no_memory(r);
                return;
        }
        JSON_EACH_ELEMENT(r) {
                if (d->spec.n_group_keys == POLICY_KEYS_MAX) {
                        json_fault(r, "more than 16 keys");
                        return;
                }
                json_string(r, arena, &d->spec.group_keys[d->spec.n_group_keys++]);
        }
}

static const JsonField next_fields[] = {
        JSON_FIELD(PolicyDraft, next, "policy", json_field_str),
        JSON_FIELD(PolicyDraft, timeout, "timeout", json_field_str),
};
JSON_DECODER(read_next, next_fields)

static const JsonField spec_fields[] = {
        JSON_FIELD(PolicyDraft, spec.selector, "selector", string_map_field),
        JSON_FIELD(PolicyDraft, strategy, "strategy", json_field_str),
        JSON_NESTED("units", read_units),
        JSON_FIELD(PolicyDraft, preempt, "preemptPolicy", json_field_str),
        JSON_FIELD(PolicyDraft, spec.ignores_previous, "ignorePreviousPod", json_field_bool),
        JSON_FIELD(PolicyDraft, spec.ignores_terminating, "ignoreTerminatingPod", json_field_bool),
        JSON_NESTED("matchLabelKeys", read_group_keys),
        JSON_NESTED("whenTryNextUnits", read_next),
};

/* ---- members that are not known ---- */

/* Notes members of the object that no table knows. With the chart's CRD, the API server refuses or
 * drops them before they are stored. */
static void note_unknown(PolicyDraft *d, Str object, const char *path, const JsonField *fields, size_t n) {
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
                        policy_spec_complain(&d->spec.ignored, "%s.%.*s is not known", path,
                                             STR_CUT(key, POLICY_SHOWN));
                json_skip(&r);
        }
}

static void note_unknown_of_units(PolicyDraft *d, Str list) {
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

static void note_all_unknown(PolicyDraft *d) {
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

/* ---- the object ---- */

/* Reads spec. A wrong type in it is a broken rule rather than an error of the object: metadata is
 * needed for an Event that tells its user. */
static void read_spec(JsonReader *r, Arena *arena, void *ret) {
        Fault why = FAULT_NULL;
        PolicyDraft *d = ret;
        int k;

        json_raw(r, &d->spec_text);
        if (json_failed(r))
                return;
        k = json_field_read(d->spec_text, arena, spec_fields, ELEMENTSOF(spec_fields), d, &why);
        if (k < 0)
                json_no_memory(r);
        else if (k > 0)
                policy_spec_complain(&d->spec.wrong, "spec: %s", why.text);
        note_all_unknown(d);
}

static const JsonField metadata_fields[] = {
        OBJECT_META_FIELDS(PolicySpec),
        JSON_FIELD(PolicySpec, generation, "generation", json_field_i64),
};
JSON_DECODER(read_metadata, metadata_fields)

static const JsonField policy_fields[] = {
        JSON_FIELD(PolicyDraft, spec, "metadata", read_metadata),
        JSON_NESTED("spec", read_spec),
};

int policy_spec_decode(Str object, Arena *arena, PolicySpec *ret, Fault *fault) {
        PolicyDraft *d = arena_new(arena, PolicyDraft, 1);
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
        r = policy_spec_judge(d);
        if (r < 0)
                return r;
        *ret = d->spec;
        return 0;
}
