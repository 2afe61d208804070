/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "local/apiserver/rest.h"
#include "wire/json_write.h"

/* Refusals as metav1.Status, with the messages of k8s.io/apimachinery/pkg/api/errors. */

typedef struct Cause {
        const char *reason, *message, *field;
} Cause;

static void write_details(JsonWriter *w, const StoreKind *kind, Str name, const Cause *cause) {
        json_write_object(w, "details");
        if (!str_is_empty(name))
                json_write_str(w, "name", name);
        if (kind && !str_is_empty(kind->group))
                json_write_str(w, "group", kind->group);
        if (kind)
                json_write_str(w, "kind", cause ? kind->kind : kind->plural);
        if (cause) {
                json_write_array(w, "causes");
                json_write_object(w, NULL);
                json_write_text(w, "reason", cause->reason);
                json_write_text(w, "message", cause->message);
                json_write_text(w, "field", cause->field);
                json_write_object_end(w);
                json_write_array_end(w);
        }
        json_write_object_end(w);
}

static void write_status(StoreReply *reply, unsigned code, const char *reason, const StoreKind *kind,
                         Str name, const Cause *cause) {
        JsonWriter w;

        reply->status = code;
        buf_clear(&reply->body);
        json_write_init(&w, &reply->body);
        json_write_object(&w, NULL);
        json_write_text(&w, "kind", "Status");
        json_write_text(&w, "apiVersion", "v1");
        json_write_raw(&w, "metadata", STR("{}"));
        json_write_text(&w, "status", "Failure");
        json_write_text(&w, "message", reply->message.text);
        json_write_text(&w, "reason", reason);
        if (kind || !str_is_empty(name))
                write_details(&w, kind, name, cause);
        json_write_u64(&w, "code", code);
        json_write_object_end(&w);
}

void store_refuse(StoreReply *reply, unsigned code, const char *reason, const StoreKind *kind, Str name,
                  const char *format, ...) {
        va_list args;

        va_start(args, format);
        /* cut to fit */
        (void) vsnprintf(reply->message.text, sizeof reply->message.text, format, args);
        va_end(args);
        write_status(reply, code, reason, kind, name, NULL);
}

void store_refuse_invalid(StoreReply *reply, const StoreKind *kind, Str name, const char *field,
                          const char *reason, const char *rule) {
        Cause cause = {reason, rule, field};

        (void) fault_set(&reply->message, 0, STR_FMT " \"%.*s\" is invalid: %s: %s", STR_ARG(kind->kind),
                         STR_CUT(name, 100), field, rule);
        write_status(reply, 422, "Invalid", kind, name, &cause);
}

void store_refuse_broken(StoreReply *reply, int error) {
        store_refuse(reply, 500, "InternalError", NULL, STR(""), "Internal error occurred: %s",
                     strerror(-error));
}

void store_refuse_not_found(StoreReply *reply, const StoreKind *kind, Str name) {
        char resource[64];

        store_kind_qualified(kind, resource, sizeof resource);
        store_refuse(reply, 404, "NotFound", kind, name, "%s \"%.*s\" not found", resource,
                     STR_CUT(name, 253));
}

void store_refuse_expired(StoreReply *reply, const char *message) {
        store_refuse(reply, 410, "Expired", NULL, STR(""), "%s", message);
}
