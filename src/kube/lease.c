/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease.h"

#include "wire/json_field.h"
#include "wire/json_write.h"

static void decode_metadata(JsonReader *r, Arena *arena, void *into) {
        static const JsonField fields[] = {
                JSON_FIELD(Lease, resource_version, "resourceVersion", json_field_str),
        };
        Lease *lease = into;
        JsonReader before = *r;

        /* the same text, read as a whole and for its resourceVersion */
        json_raw(&before, &lease->metadata);
        json_field_decode(r, arena, fields, ELEMENTSOF(fields), lease);
}

static void decode_spec(JsonReader *r, Arena *arena, void *into) {
        static const JsonField fields[] = {
                JSON_FIELD(Lease, holder, "holderIdentity", json_field_str),
                JSON_FIELD(Lease, duration_sec, "leaseDurationSeconds", json_field_i64),
                JSON_FIELD(Lease, transitions, "leaseTransitions", json_field_i64),
                JSON_FIELD(Lease, acquire_time, "acquireTime", json_field_str),
                JSON_FIELD(Lease, renew_time, "renewTime", json_field_str),
        };

        json_field_decode(r, arena, fields, ELEMENTSOF(fields), into);
}

int lease_decode(Str json, Arena *arena, Lease *ret, Fault *fault) {
        static const JsonField fields[] = {
                JSON_NESTED("metadata", decode_metadata),
                JSON_NESTED("spec", decode_spec),
        };
        Lease lease = {0};
        int r = json_field_read(json, arena, fields, ELEMENTSOF(fields), &lease, fault);

        if (r != 0)
                return r < 0 ? r : LEASE_E_MALFORMED;
        if (str_is_empty(lease.resource_version))
                return fault_set(fault, LEASE_E_MALFORMED, "a Lease without metadata.resourceVersion");
        *ret = lease;
        return 0;
}

void lease_write(Buf *out, const Lease *lease, const char *namespace_, const char *name) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", "coordination.k8s.io/v1");
        json_write_text(&w, "kind", "Lease");
        if (str_is_empty(lease->metadata)) {
                json_write_object(&w, "metadata");
                json_write_text(&w, "name", name);
                json_write_text(&w, "namespace", namespace_);
                json_write_object_end(&w);
        } else {
                json_write_raw(&w, "metadata", lease->metadata);
        }
        json_write_object(&w, "spec");
        json_write_str(&w, "holderIdentity", lease->holder);
        json_write_i64(&w, "leaseDurationSeconds", lease->duration_sec);
        json_write_str(&w, "acquireTime", lease->acquire_time);
        json_write_str(&w, "renewTime", lease->renew_time);
        json_write_i64(&w, "leaseTransitions", lease->transitions);
        json_write_object_end(&w);
        json_write_object_end(&w);
}
