/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease.h"

#include <errno.h>

#include "base/clock.h"
#include "wire/json_table.h"
#include "wire/json_write.h"

static const JsonField meta_fields[] = {
        JSON_FIELD(Lease, resource_version, "resourceVersion", json_field_str),
};

static void decode_meta(JsonReader *r, Arena *arena, void *into) {
        json_decode(r, arena, meta_fields, ELEMENTSOF(meta_fields), into);
}

static const JsonField spec_fields[] = {
        JSON_FIELD(Lease, holder, "holderIdentity", json_field_str),
        JSON_FIELD(Lease, acquire_time, "acquireTime", json_field_str),
        JSON_FIELD(Lease, renew_time, "renewTime", json_field_str),
        JSON_FIELD(Lease, duration_seconds, "leaseDurationSeconds", json_field_i64),
        JSON_FIELD(Lease, transitions, "leaseTransitions", json_field_i64),
};

static void decode_spec(JsonReader *r, Arena *arena, void *into) {
        json_decode(r, arena, spec_fields, ELEMENTSOF(spec_fields), into);
}

static const JsonField lease_fields[] = {
        {STR("metadata"), decode_meta, 0},
        {STR("spec"), decode_spec, 0},
};

int lease_decode(Str json, Arena *arena, Lease *ret) {
        Lease lease = {0};
        JsonReader r;
        int q;

        json_init(&r, json);
        json_decode(&r, arena, lease_fields, ELEMENTSOF(lease_fields), &lease);
        q = json_finish(&r, NULL);
        if (q == 0)
                *ret = lease;
        return q;
}

void lease_write(const Lease *lease, Str namespace_, Str name, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", "coordination.k8s.io/v1");
        json_write_text(&w, "kind", "Lease");
        json_write_object(&w, "metadata");
        json_write_str(&w, "name", name);
        json_write_str(&w, "namespace", namespace_);
        if (!str_is_empty(lease->resource_version))
                json_write_str(&w, "resourceVersion", lease->resource_version);
        json_write_object_end(&w);
        json_write_object(&w, "spec");
        json_write_str(&w, "holderIdentity", lease->holder);
        json_write_i64(&w, "leaseDurationSeconds", lease->duration_seconds);
        json_write_str(&w, "acquireTime", lease->acquire_time);
        json_write_str(&w, "renewTime", lease->renew_time);
        json_write_i64(&w, "leaseTransitions", lease->transitions);
        json_write_object_end(&w);
        json_write_object_end(&w);
}

static Str put(char **at, Str s) {
        Str copy = {*at, s.len};

        if (s.len > 0)
                memcpy(*at, s.data, s.len);
        *at += s.len;
        return copy;
}

int lease_copy(Lease *into, const Lease *from) {
        size_t n =
                from->resource_version.len + from->holder.len + from->acquire_time.len + from->renew_time.len;
        char *owned = malloc(n + 1), *at = owned;
        Lease copy = *from;

        if (!owned)
                return -ENOMEM;
        copy.resource_version = put(&at, from->resource_version);
        copy.holder = put(&at, from->holder);
        copy.acquire_time = put(&at, from->acquire_time);
        copy.renew_time = put(&at, from->renew_time);
        copy.owned = owned;
        lease_done(into);
        *into = copy;
        return 0;
}

void lease_done(Lease *lease) {
        free(lease->owned);
        *lease = (Lease){0};
}

void lease_now(char ret[static 40]) {
        uint64_t usec = clock_realtime_nsec() / NSEC_PER_USEC;
        time_t seconds = (time_t) (usec / USEC_PER_SEC);
        struct tm utc;
        char date[24];

        (void) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
        (void) snprintf(ret, 40, "%s.%06uZ", date, (unsigned) (usec % USEC_PER_SEC));
}
