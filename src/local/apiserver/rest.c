/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/rest.h"

#include <errno.h>
#include <strings.h>

int store_api_init(StoreApi *a, size_t history, uint64_t seed) {
        *a = (StoreApi){.seed = seed};
        return store_objects_new(history, &a->objects);
}

void store_api_done(StoreApi *a) {
        store_objects_free(a->objects);
        arena_done(&a->arena);
        buf_done(&a->admitted);
        buf_done(&a->merged);
        buf_done(&a->composed);
        *a = (StoreApi){0};
}

const char *store_query(const StoreCall *call, const char *name) {
        return call->query ? call->query(call->userdata, name) : NULL;
}

bool store_query_is_true(const StoreCall *call, const char *name) {
        const char *value = store_query(call, name);

        return value && (strcmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

/* Splits /api/VERSION/REST or /apis/GROUP/VERSION/REST; *path becomes REST. */
static bool split_group(Str *path, Str *ret_group, Str *ret_version) {
        Str group = STR("");

        (void) str_split(path, '/'); /* the empty text before the first slash */
        if (str_has_prefix(*path, STR("apis/"))) {
                (void) str_split(path, '/');
                group = str_split(path, '/');
                if (str_is_empty(group))
                        return false;
        } else if (!str_eq(str_split(path, '/'), STR("api"))) {
                return false;
        }
        *ret_group = group;
        *ret_version = str_split(path, '/');
        return true;
}

/* In namespaces/NS/PLURAL, PLURAL is a resource in the namespace, unless it is a subresource of the
 * namespace itself. */
bool store_route(const char *path, StoreRoute *ret) {
        Str rest = str_from(path), group, version, plural;
        const StoreKind *kind;

        *ret = (StoreRoute){0};
        if (!split_group(&rest, &group, &version))
                return false;
        plural = str_split(&rest, '/');
        ret->name = str_split(&rest, '/');
        if (str_eq(plural, STR("namespaces")) && !str_is_empty(ret->name)) {
                Str behind = rest, next = str_split(&behind, '/');

                kind = store_kind_by_plural(group, next);
                if (kind && kind->namespaced) {
                        *ret = (StoreRoute){.namespace_ = ret->name, .name = str_split(&behind, '/')};
                        plural = next;
                        rest = behind;
                }
        }
        ret->subresource = str_split(&rest, '/');
        ret->kind = store_kind_by_plural(group, plural);
        if (!ret->kind || !str_eq(store_kind_version(ret->kind), version) || !str_is_empty(rest) ||
            (str_is_empty(ret->name) && !str_is_empty(ret->subresource)))
                return false;
        /* A namespaced object needs its namespace in the path; without one the path is the list of
         * all. */
        return !ret->kind->namespaced || !str_is_empty(ret->namespace_) || str_is_empty(ret->name);
}

/* ---- bodies ---- */

static bool is_media_type(const char *content_type, Str wanted) {
        Str rest = str_from(content_type), type = str_trim(str_split(&rest, ';'));

        return type.len == wanted.len && strncasecmp(type.data, wanted.data, wanted.len) == 0;
}

static bool admit_body(StoreApi *a, Str body, StoreReply *reply) {
        Fault fault = FAULT_NULL;
        int r;

        buf_clear(&a->admitted);
        if (body.len > STORE_BODY_MAX) {
                store_refuse(reply, 413, "RequestEntityTooLarge", NULL, STR(""),
                             "Request entity too large: limit is %d", STORE_BODY_MAX);
                return false;
        }
        r = store_admit(body, &a->admitted, &fault);
        if (r < 0)
                store_refuse_broken(reply, r);
        else if (r > 0)
                store_refuse(reply, 400, "BadRequest", NULL, STR(""), "the body is not accepted: %s",
                             fault.text);
        return r == 0;
}

static bool admit_as(StoreApi *a, const StoreCall *call, Str media_type, StoreReply *reply) {
        if (*call->content_type && !is_media_type(call->content_type, media_type)) {
                store_refuse(reply, 415, "UnsupportedMediaType", NULL, STR(""),
                             "the body of the request was in an unknown format - accepted media types "
                             "include: " STR_FMT,
                             STR_ARG(media_type));
                return false;
        }
        return admit_body(a, call->body, reply);
}

/* ---- verbs ---- */

static void answer_post(StoreApi *a, const StoreRoute *route, const StoreCall *call, StoreReply *reply) {
        if (!admit_as(a, call, STR("application/json"), reply))
                return;
        if (str_is_empty(route->name))
                store_create(a, route, buf_str(&a->admitted), reply);
        else
                store_bind(a, route, buf_str(&a->admitted), reply);
}

static void answer_put(StoreApi *a, const StoreRoute *route, const StoreCall *call, StoreReply *reply) {
        if (admit_as(a, call, STR("application/json"), reply))
                store_update(a, route, buf_str(&a->admitted), reply);
}

static void answer_patch(StoreApi *a, const StoreRoute *route, const StoreCall *call, StoreReply *reply) {
        bool strategic = is_media_type(call->content_type, STR("application/strategic-merge-patch+json"));

        if (strategic ? admit_body(a, call->body, reply)
                      : admit_as(a, call, STR("application/merge-patch+json"), reply))
                store_patch(a, route, buf_str(&a->admitted), strategic, reply);
}

static void answer_delete(StoreApi *a, const StoreRoute *route, const StoreCall *call, StoreReply *reply) {
        if (str_is_empty(call->body))
                store_delete(a, route, call, STR("{}"), reply);
        else if (admit_as(a, call, STR("application/json"), reply))
                store_delete(a, route, call, buf_str(&a->admitted), reply);
}

static void answer_get(StoreApi *a, const StoreRoute *route, const StoreCall *call, StoreReply *reply) {
        if (str_is_empty(route->name))
                store_list(a, route, call, reply);
        else
                store_get(a, route, reply);
}

typedef enum Target {
        TARGET_COLLECTION = 1,
        TARGET_OBJECT = 2,
        TARGET_STATUS = 4,
        TARGET_BINDING = 8
} Target;

static const struct {
        const char *method;
        unsigned targets;
        void (*answer)(StoreApi *a, const StoreRoute *route, const StoreCall *call, StoreReply *reply);
} verbs[] = {
        {"GET", TARGET_COLLECTION | TARGET_OBJECT | TARGET_STATUS, answer_get},
        {"POST", TARGET_COLLECTION | TARGET_BINDING, answer_post},
        {"PUT", TARGET_OBJECT | TARGET_STATUS, answer_put},
        {"PATCH", TARGET_OBJECT | TARGET_STATUS, answer_patch},
        {"DELETE", TARGET_OBJECT, answer_delete},
};

/* Returns 0 when there is no such subresource. */
static unsigned target_of(const StoreRoute *route) {
        if (str_is_empty(route->name))
                return TARGET_COLLECTION;
        if (str_is_empty(route->subresource))
                return TARGET_OBJECT;
        if (route->kind->status && str_eq(route->subresource, STR("status")))
                return TARGET_STATUS;
        return store_kind_is_pod(route->kind) && str_eq(route->subresource, STR("binding")) ? TARGET_BINDING
                                                                                            : 0;
}

static void answer_resource(StoreApi *a, const StoreRoute *route, unsigned target, const StoreCall *call,
                            StoreReply *reply) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                bool everywhere = target == TARGET_COLLECTION && route->kind->namespaced &&
                                  str_is_empty(route->namespace_) && strcmp(call->method, "POST") == 0;

                if (strcmp(verbs[i].method, call->method) == 0 && (verbs[i].targets & target) &&
                    !everywhere) {
                        verbs[i].answer(a, route, call, reply);
                        return;
                }
        }
        store_refuse(reply, 405, "MethodNotAllowed", route->kind, route->name,
                     "the server does not allow this method on the requested resource");
}

static void finish_reply(StoreReply *reply) {
        if (buf_result(&reply->body) == 0)
                return;
        reply->status = 500;
        buf_done(&reply->body);
}

void store_answer(StoreApi *a, const StoreCall *call, StoreReply *reply) {
        StoreRoute route;
        unsigned target = 0;

        arena_reset(&a->arena);
        if (strcmp(call->method, "GET") == 0 && store_discover(call->path, reply)) {
                finish_reply(reply);
                return;
        }
        if (store_route(call->path, &route))
                target = target_of(&route);
        if (target > 0)
                answer_resource(a, &route, target, call, reply);
        else
                store_refuse(reply, 404, "NotFound", NULL, STR(""),
                             "the server could not find the requested resource");
        finish_reply(reply);
}

void store_answer_apply(StoreApi *a, Str manifest, StoreReply *reply) {
        Str object, kind, version;
        StoreRoute route = {0};

        arena_reset(&a->arena);
        if (!admit_body(a, manifest, reply))
                return;
        object = buf_str(&a->admitted);
        kind = store_string(store_member(object, "kind"), &a->arena);
        version = store_string(store_member(object, "apiVersion"), &a->arena);
        route.kind = store_kind_by_kind(version, kind);
        if (!route.kind) {
                store_refuse(reply, 404, "NotFound", NULL, STR(""),
                             "no matches for kind \"%.*s\" in version \"%.*s\"", STR_CUT(kind, 100),
                             STR_CUT(version, 100));
                return;
        }
        if (route.kind->namespaced)
                route.namespace_ = store_string(store_path(object, "metadata.namespace"), &a->arena);
        if (route.kind->namespaced && str_is_empty(route.namespace_))
                route.namespace_ = STR("default");
        store_create(a, &route, object, reply);
        finish_reply(reply);
}
