/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/status.h"

#include "wire/json_field.h"

typedef struct Decoded {
        KubeStatus status;
        Str kind;
} Decoded;

static void decode_details(JsonReader *r, Arena *arena, void *into) {
        static const JsonField fields[] = {
                JSON_FIELD(Decoded, status.retry_after_sec, "retryAfterSeconds", json_field_i64),
        };

        json_field_decode(r, arena, fields, ELEMENTSOF(fields), into);
}

bool kube_status_decode(Str json, Arena *arena, KubeStatus *ret) {
        static const JsonField fields[] = {
                JSON_FIELD(Decoded, kind, "kind", json_field_str),
                JSON_FIELD(Decoded, status.code, "code", json_field_i64),
                JSON_FIELD(Decoded, status.reason, "reason", json_field_str),
                JSON_FIELD(Decoded, status.message, "message", json_field_str),
                JSON_NESTED("details", decode_details),
        };
        Decoded d = {0};

        if (json_field_read(json, arena, fields, ELEMENTSOF(fields), &d, NULL) != 0 ||
            !str_eq(d.kind, STR("Status")))
                return false;
        *ret = d.status;
        return true;
}
