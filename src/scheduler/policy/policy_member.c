/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/policy_member.h"

#include "base/timestamp.h"
#include "scheduler/policy/policy_spec.h"
#include "wire/object-internal.h"

static void read_conditions(JsonReader *r, Arena *arena, void *ret) {
        PolicyMember *m = ret;
        ObjectCondition c;

        if (!json_array_begin(r))
                return;
        while (object_next_condition(r, arena, &c)) {
                if (!str_eq(c.type, STR("PodScheduled")))
                        continue;
                m->scheduled = str_eq(c.status, STR("True"));
                m->gated = str_eq(c.reason, STR("SchedulingGated"));
                m->failed = str_eq(c.status, STR("False")) && !m->gated;
                m->since = timestamp_read(c.since);
        }
}

static const JsonField metadata_fields[] = {
        JSON_FIELD(PolicyMember, labels, "labels", string_map_field),
        JSON_FIELD(PolicyMember, annotations, "annotations", string_map_field),
};
JSON_DECODER(read_metadata, metadata_fields)

static void read_nominated(JsonReader *r, Arena *arena, void *ret) {
        Str name = {NULL, 0};

        json_string(r, arena, &name);
        ((PolicyMember *) ret)->nominated = !str_is_empty(name);
}

static const JsonField status_fields[] = {
        JSON_NESTED("conditions", read_conditions),
        JSON_NESTED("nominatedNodeName", read_nominated),
};
JSON_DECODER(read_status, status_fields)

static const JsonField member_fields[] = {
        JSON_NESTED("metadata", read_metadata),
        JSON_NESTED("status", read_status),
};

int policy_member_decode(Str pod, Arena *arena, PolicyMember *ret, Fault *fault) {
        PolicyMember m = {0};
        JsonReader reader;
        int r;

        json_init(&reader, pod);
        object_read(&reader, arena, member_fields, ELEMENTSOF(member_fields), &m);
        r = json_finish(&reader, fault);
        if (r != 0)
                return object_result(r, "pod", &(ObjectMeta){0}, fault);
        *ret = m;
        return 0;
}
