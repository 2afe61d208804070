/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pod_gang.h"

#include <errno.h>
#include <stddef.h>

#include "wire/annotation.h"
#include "wire/object-internal.h"
#include "wire/topology_keys.h"

typedef struct Draft {
        PodGang gang;
        Str label_name, label, annotation_name, label_min, annotation_min, job, replicas;
        Str selector, affinity, tolerations, spread; /* JSON, as in the text */
} Draft;

static const JsonField label_fields[] = {
        JSON_FIELD(Draft, label_name, LABEL_GANG_NAME, json_field_str),
        JSON_FIELD(Draft, label, LABEL_GANG, json_field_str),
        JSON_FIELD(Draft, label_min, LABEL_GANG_MIN, json_field_str),
        JSON_FIELD(Draft, job, LABEL_TOPOLOGY_JOB, json_field_str),
        JSON_FIELD(Draft, replicas, LABEL_TOPOLOGY_REPLICAS, json_field_str),
};
JSON_DECODER(read_labels, label_fields)

static const JsonField annotation_fields[] = {
        JSON_FIELD(Draft, annotation_name, ANNOTATION_GANG_NAME, json_field_str),
        JSON_FIELD(Draft, annotation_min, ANNOTATION_GANG_MIN, json_field_str),
};
JSON_DECODER(read_annotations, annotation_fields)

static const JsonField metadata_fields[] = {
        JSON_NESTED("labels", read_labels),
        JSON_NESTED("annotations", read_annotations),
};
JSON_DECODER(read_metadata, metadata_fields)

static const JsonField gate_fields[] = {{STR("name"), json_field_str, 0}};

static void read_gates(JsonReader *r, Arena *arena, void *ret) {
        Draft *d = ret;

        d->gang.gated = d->gang.gated_else = false;
        JSON_EACH_ELEMENT(r) {
                Str name = {0};
                bool ours;

                json_field_decode(r, arena, gate_fields, ELEMENTSOF(gate_fields), &name);
                ours = str_eq(name, STR(GATE_GANG));
                d->gang.gated |= ours;
                d->gang.gated_else |= !ours;
        }
}

static const JsonField spec_fields[] = {
        JSON_FIELD(Draft, gang.priority, "priority", json_field_i64),
        JSON_NESTED("schedulingGates", read_gates),
        JSON_FIELD(Draft, selector, "nodeSelector", json_field_raw),
        JSON_FIELD(Draft, affinity, "affinity", json_field_raw),
        JSON_FIELD(Draft, tolerations, "tolerations", json_field_raw),
        JSON_FIELD(Draft, spread, "topologySpreadConstraints", json_field_raw),
};
JSON_DECODER(read_spec, spec_fields)

static void read_conditions(JsonReader *r, Arena *arena, void *ret) {
        Draft *d = ret;
        ObjectCondition c;

        if (!json_array_begin(r))
                return;
        while (object_next_condition(r, arena, &c)) {
                if (!str_eq(c.type, STR("PodScheduled")))
                        continue;
                d->gang.unschedulable =
                        str_eq(c.status, STR("False")) && str_eq(c.reason, STR("Unschedulable"));
                d->gang.message = c.message;
        }
}

static const JsonField status_fields[] = {JSON_NESTED("conditions", read_conditions)};
JSON_DECODER(read_status, status_fields)

static const JsonField pod_fields[] = {
        JSON_NESTED("metadata", read_metadata),
        JSON_NESTED("spec", read_spec),
        JSON_NESTED("status", read_status),
};

static Str first_of(Str a, Str b, Str c) {
        if (!str_is_empty(a))
                return a;
        return str_is_empty(b) ? c : b;
}

/* The text is hashed as it stands, since the API server writes the members of an object in one
 * order. */
static uint64_t hash_constraints(const Draft *d) {
        uint64_t hash = str_hash64(d->selector, 1);

        hash = str_hash64(d->affinity, hash);
        hash = str_hash64(d->tolerations, hash);
        return str_hash64(d->spread, hash);
}

/* Names the gang after its job. A label's value has no slash, so no gang of a label has this
 * name. */
static int name_job(Draft *d, Arena *arena) {
        static const Str before = STR(LABEL_TOPOLOGY_JOB "/");
        char *name = arena_alloc(arena, before.len + d->job.len, 1);

        if (!name)
                return -ENOMEM;
        memcpy(name, before.data, before.len);
        memcpy(name + before.len, d->job.data, d->job.len);
        d->gang.name = (Str){name, before.len + d->job.len};
        d->gang.min = d->replicas;
        d->gang.min_key = LABEL_TOPOLOGY_REPLICAS;
        return 0;
}

int pod_gang_decode(Str json, Arena *arena, PodGang *ret, Fault *fault) {
        Draft d = {0};
        int r = json_field_read(json, arena, pod_fields, ELEMENTSOF(pod_fields), &d, fault);

        if (r != 0)
                return r > 0 ? fault_wrap(fault, OBJECT_E_MALFORMED, "pod") : r;
        d.gang.name = first_of(d.label_name, d.label, d.annotation_name);
        d.gang.min = first_of(d.label_min, d.annotation_min, STR(""));
        d.gang.min_key = LABEL_GANG_MIN;
        if (str_is_empty(d.gang.name) && !str_is_empty(d.job) && name_job(&d, arena) < 0)
                return -ENOMEM;
        d.gang.where = hash_constraints(&d);
        *ret = d.gang;
        return 0;
}

bool pod_gang_min(Str text, uint32_t *ret) {
        return str_to_u32(text, ret) && *ret >= 1 && *ret <= POD_GANG_MIN_MAX;
}
