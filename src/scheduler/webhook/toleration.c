/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/toleration.h"

#include <stddef.h>

#include "wire/annotation.h"
#include "wire/json_field.h"

typedef struct Toleration {
        Str key, operator_, effect;
} Toleration;

static const JsonField toleration_fields[] = {
        JSON_FIELD(Toleration, key, "key", json_field_str),
        JSON_FIELD(Toleration, operator_, "operator", json_field_str),
        JSON_FIELD(Toleration, effect, "effect", json_field_str),
};

/* Whether it tolerates our taint. With Exists an empty key matches every taint; an empty effect
 * matches every effect (k8s.io/api/core/v1, Toleration). */
static bool covers(const Toleration *t) {
        return str_eq(t->operator_, STR("Exists")) &&
               (str_is_empty(t->key) || str_eq(t->key, STR(RESOURCE_GPU_MEM))) &&
               (str_is_empty(t->effect) || str_eq(t->effect, STR("NoSchedule")));
}

static void read_list(JsonReader *r, Arena *arena, void *ret) {
        TolerationNeed *need = ret;

        if (json_peek(r) == JSON_NULL) {
                json_skip(r);
                return;
        }
        need->has_list = true;
        JSON_EACH_ELEMENT(r) {
                Toleration t = {0};

                json_field_decode(r, arena, toleration_fields, ELEMENTSOF(toleration_fields), &t);
                if (covers(&t))
                        need->wanted = false;
        }
}

static const JsonField spec_fields[] = {JSON_NESTED("tolerations", read_list)};
JSON_DECODER(read_spec, spec_fields)

static const JsonField pod_fields[] = {JSON_NESTED("spec", read_spec)};

int toleration_read(const Subject *s, Str json, Arena *arena, TolerationNeed *ret) {
        Fault fault = FAULT_NULL;
        int r;

        *ret = (TolerationNeed){.wanted = str_is_empty(s->pod.node_name) && subject_asks_for_cards(s)};
        if (!ret->wanted)
                return 0;
        r = json_field_read(json, arena, pod_fields, ELEMENTSOF(pod_fields), ret, &fault);
        if (r != 0)
                ret->wanted = false;
        return r < 0 ? r : 0;
}

void toleration_write(const TolerationNeed *need, Buf *out) {
#define TOLERATION "{\"key\":\"" RESOURCE_GPU_MEM "\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}"
        buf_append_str(
                out,
                need->has_list
                        ? STR("{\"op\":\"add\",\"path\":\"/spec/tolerations/-\",\"value\":" TOLERATION "}")
                        : STR("{\"op\":\"add\",\"path\":\"/spec/tolerations\",\"value\":[" TOLERATION "]}"));
}
