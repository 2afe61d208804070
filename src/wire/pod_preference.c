/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pod_preference.h"

#include <stddef.h>

#include "wire/object-internal.h"

/* Whether the list has an element. */
static void read_any(JsonReader *r, Arena *arena, void *ret_bool) {
        JSON_EACH_ELEMENT(r) {
                *(bool *) ret_bool = true;
                json_skip(r);
        }
}

#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static const JsonField preferred_fields[] = {JSON_FIELD(PodPreference, prefers, PREFERRED, read_any)};
JSON_DECODER(read_preferred, preferred_fields)

static const JsonField affinity_fields[] = {
        JSON_NESTED("nodeAffinity", read_preferred),
        JSON_NESTED("podAffinity", read_preferred),
        JSON_NESTED("podAntiAffinity", read_preferred),
};
JSON_DECODER(read_affinity, affinity_fields)

static const JsonField spread_fields[] = {{STR("whenUnsatisfiable"), json_field_str, 0}};

static void read_spread(JsonReader *r, Arena *arena, void *ret) {
        PodPreference *p = ret;

        JSON_EACH_ELEMENT(r) {
                Str when = {0};

                json_field_decode(r, arena, spread_fields, ELEMENTSOF(spread_fields), &when);
                p->prefers |= str_eq(when, STR("ScheduleAnyway"));
        }
}

static const JsonField spec_fields[] = {
        JSON_NESTED("affinity", read_affinity),
        JSON_NESTED("topologySpreadConstraints", read_spread),
};
JSON_DECODER(read_spec, spec_fields)

static void read_conditions(JsonReader *r, Arena *arena, void *ret) {
        PodPreference *p = ret;
        ObjectCondition c;

        if (!json_array_begin(r))
                return;
        while (object_next_condition(r, arena, &c)) {
                p->failed |= str_eq(c.type, STR("PodScheduled")) && str_eq(c.status, STR("False")) &&
                             !str_eq(c.reason, STR("SchedulingGated"));
        }
}

static const JsonField status_fields[] = {JSON_NESTED("conditions", read_conditions)};
JSON_DECODER(read_status, status_fields)

static const JsonField pod_fields[] = {
        JSON_NESTED("spec", read_spec),
        JSON_NESTED("status", read_status),
};

int pod_preference_decode(Str json, Arena *arena, PodPreference *ret, Fault *fault) {
        PodPreference p = {0};
        int r = json_field_read(json, arena, pod_fields, ELEMENTSOF(pod_fields), &p, fault);

        if (r != 0)
                return r > 0 ? fault_wrap(fault, OBJECT_E_MALFORMED, "pod") : r;
        *ret = p;
        return 0;
}
