/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease.h"

#include "kube/escape.h"
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

void lease_path(Buf *out, const char *namespace_, const char *name) {
        buf_append_str(out, STR("/apis/coordination.k8s.io/v1/namespaces/"));
        kube_url_escape(out, str_from(namespace_));
        buf_append_str(out, STR("/leases"));
        if (name)
                buf_append_char(out, '/');
        kube_url_escape(out, str_from(name));
}

int lease_timers(sd_event *event, sd_event_time_handler_t on_next, sd_event_time_handler_t on_deadline,
                 void *userdata, sd_event_source **next, sd_event_source **deadline) {
        int r = sd_event_add_time_relative(event, next, CLOCK_MONOTONIC, 0, 1, on_next, userdata);

        if (r >= 0)
                r = sd_event_add_time(event, deadline, CLOCK_BOOTTIME, 0, 1, on_deadline, userdata);
        /* A process that was stopped wakes up to requests that are as late as the deadline, so the
         * deadline is handled first. */
        if (r >= 0)
                r = sd_event_source_set_priority(*deadline, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = sd_event_source_set_enabled(*deadline, SD_EVENT_OFF);
        return r;
}
