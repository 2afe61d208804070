/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/mutation.h"
#include "wire/json.h"
#include "wire/json_write.h"

/* Answers 409, a conflict on pods/binding as the API server reports it (registry/core/pod/storage,
 * assignPod). */
static void refuse_binding(Mutation *c, const char *why, Str node) {
        store_refuse(c->reply, 409, "Conflict", c->route->kind, c->route->name,
                     "Operation cannot be fulfilled on pods/binding \"" STR_FMT "\": pod " STR_FMT
                     " %s" STR_FMT "%s",
                     STR_ARG(c->route->name), STR_ARG(c->route->name), why, STR_ARG(node),
                     str_is_empty(node) ? "" : "\"");
}

static bool may_bind(Mutation *c, Str binding) {
        Str uid = store_string(store_path(binding, "metadata.uid"), &c->api->arena);
        Str name = store_string(store_path(binding, "metadata.name"), &c->api->arena);
        Str node = store_string(store_path(c->old->text, "spec.nodeName"), &c->api->arena);

        if (!str_is_empty(name) && !str_eq(name, c->id.name))
                mutation_refuse_request(c, "name in URL does not match name in Binding object");
        else if (!str_is_empty(uid) && !str_eq(uid, c->id.uid))
                mutation_refuse_uid(c, uid);
        else if (!str_is_empty(c->id.deletion))
                refuse_binding(c, "is being deleted, cannot be assigned to a host", STR(""));
        else if (!str_is_empty(node))
                refuse_binding(c, "is already assigned to node \"", node);
        else
                return true;
        return false;
}

/* Writes all conditions but PodScheduled, and then that one. */
static void write_conditions(Mutation *c, Buf *out) {
        Str conditions = store_path(c->old->text, "status.conditions"), one;
        JsonReader r;

        buf_append_char(out, '[');
        json_init(&r, str_is_empty(conditions) ? STR("[]") : conditions);
        (void) json_array_begin(&r);
        while (json_array_next(&r)) {
                one = (Str){NULL, 0};
                json_raw(&r, &one);
                if (str_eq(store_member(one, "type"), STR("\"PodScheduled\"")))
                        continue;
                buf_append_str(out, one);
                buf_append_char(out, ',');
        }
        buf_append_str(out, STR("{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":"));
        json_write_quoted(out, store_time(c->api->now, &c->api->arena));
        buf_append_str(out, STR("}]"));
}

static int merge_binding(Mutation *c, Str binding, Str node) {
        _cleanup_buf_ Buf patch = BUF_NULL;
        Str annotations = store_path(binding, "metadata.annotations");
        Str labels = store_path(binding, "metadata.labels");
        int r;

        buf_append_str(&patch, STR("{\"metadata\":{\"annotations\":"));
        buf_append_str(&patch, store_is_object(annotations) ? annotations : STR("{}"));
        buf_append_str(&patch, STR(",\"labels\":"));
        buf_append_str(&patch, store_is_object(labels) ? labels : STR("{}"));
        buf_append_str(&patch, STR("},\"spec\":{\"nodeName\":"));
        json_write_quoted(&patch, node);
        buf_append_str(&patch, STR("},\"status\":{\"conditions\":"));
        write_conditions(c, &patch);
        buf_append_str(&patch, STR("}}"));
        r = buf_result(&patch);
        buf_clear(&c->api->merged);
        return r < 0 ? r
                     : store_merge_patch(c->old->text, buf_str(&patch), false, &c->api->arena,
                                         &c->api->merged);
}

static void succeed(StoreReply *reply, unsigned code) {
        reply->status = code;
        buf_clear(&reply->body);
        buf_appendf(&reply->body,
                    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\","
                    "\"code\":%u}",
                    code);
}

void store_bind(StoreApi *a, const StoreRoute *route, Str binding, StoreReply *reply) {
        Mutation c = {.api = a, .route = route, .reply = reply};
        Str node = store_string(store_path(binding, "target.name"), &a->arena);
        Str kind = store_string(store_path(binding, "target.kind"), &a->arena);
        StoreViolation violation = {0};
        int r;

        if (!mutation_begin(&c))
                return;
        if (!str_is_empty(kind) && !str_eq(kind, STR("Node"))) {
                store_refuse_invalid(reply, route->kind, route->name, "target.kind", "FieldValueNotSupported",
                                     "Unsupported value: supported values: \"Node\", \"<empty>\"");
                return;
        }
        if (str_is_empty(node)) {
                store_refuse_invalid(reply, route->kind, route->name, "target.name", "FieldValueRequired",
                                     "Required value");
                return;
        }
        if (!may_bind(&c, binding) ||
            !mutation_valid(
                    &c, store_validate_annotations(store_path(binding, "metadata.annotations"), &violation),
                    &violation))
                return;
        r = merge_binding(&c, binding, node);
        if (r < 0) {
                store_refuse_broken(reply, r);
                return;
        }
        binding = buf_str(&a->merged);
        mutation_commit(&c, STORE_MODIFIED, store_member(binding, "metadata"), binding,
                        store_member(binding, "status"), 201);
        if (reply->status == 201)
                succeed(reply, 201);
}
