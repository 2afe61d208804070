/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/mutation.h"

#include <errno.h>
#include <time.h>

Str store_time(uint64_t seconds, Arena *arena) {
        time_t t = (time_t) seconds;
        char text[40];
        struct tm tm;
        size_t n;

        if (!gmtime_r(&t, &tm))
                return (Str){NULL, 0};
        n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
        return arena_str(arena, (Str){text, n});
}

Str store_key(StoreApi *a, const StoreRoute *route) {
        size_t n = route->namespace_.len + 1 + route->name.len;
        char *key;

        if (!route->kind->namespaced)
                return route->name;
        key = arena_alloc(&a->arena, n, 1);
        if (!key)
                return (Str){NULL, 0};
        memcpy(key, route->namespace_.data, route->namespace_.len);
        key[route->namespace_.len] = '/';
        memcpy(key + route->namespace_.len + 1, route->name.data, route->name.len);
        return (Str){key, n};
}

void mutation_refuse_conflict(Mutation *c, const char *why) {
        char resource[64];

        store_kind_qualified(c->route->kind, resource, sizeof resource);
        store_refuse(c->reply, 409, "Conflict", c->route->kind, c->route->name,
                     "Operation cannot be fulfilled on %s \"" STR_FMT "\": %s", resource,
                     STR_ARG(c->route->name), why);
}

void mutation_refuse_uid(Mutation *c, Str wanted) {
        char why[200];

        (void) snprintf(why, sizeof why,
                        "Precondition failed: UID in precondition: %.*s, UID in object meta: " STR_FMT,
                        STR_CUT(wanted, 64), STR_ARG(c->id.uid));
        mutation_refuse_conflict(c, why);
}

void mutation_refuse_request(Mutation *c, const char *message) {
        store_refuse(c->reply, 400, "BadRequest", NULL, STR(""), "%s", message);
}

int mutation_store(Mutation *c, StoreChange change, Str text) {
        enum { STATUS_ROOM = 1024 };

        if (!buf_reserve(&c->reply->body, text.len + STATUS_ROOM))
                return -ENOMEM;
        return store_commit(c->api->objects, c->route->kind, c->key, change, text);
}

void mutation_commit(Mutation *c, StoreChange change, Str metadata, Str base, Str status, unsigned code) {
        StoreApi *a = c->api;
        Buf *text = &a->composed;
        int r;

        buf_clear(text);
        store_compose(c->route->kind, store_version(a->objects) + 1, &c->id, metadata, base, status, text);
        r = buf_result(text);
        if (r == 0 && change == STORE_MODIFIED &&
            store_same_but_version(c->route->kind, c->old->text, buf_str(text))) {
                buf_clear(text);
                buf_append_str(text, c->old->text);
                r = buf_result(text);
        } else if (r == 0) {
                r = mutation_store(c, change, buf_str(text));
        }
        if (r < 0) {
                store_refuse_broken(c->reply, r);
                return;
        }
        c->reply->status = code;
        buf_append_str(&c->reply->body, buf_str(text));
}

bool mutation_valid(Mutation *c, int result, const StoreViolation *v) {
        const StoreKind *kind = c->route->kind;

        if (result < 0)
                store_refuse_broken(c->reply, result);
        else if (result == STORE_VALID_E_TYPE)
                store_refuse(c->reply, 400, "BadRequest", NULL, STR(""),
                             STR_FMT " in version \"" STR_FMT "\" cannot be handled as a " STR_FMT ": %s: %s",
                             STR_ARG(kind->kind), STR_ARG(store_kind_version(kind)), STR_ARG(kind->kind),
                             v->field, v->rule.text);
        else if (result == STORE_VALID_E_RULE)
                store_refuse_invalid(c->reply, kind, c->id.name, v->field, v->reason, v->rule.text);
        return result == 0;
}

bool mutation_is_of_kind(Mutation *c, Str object) {
        Str kind = store_string(store_member(object, "kind"), &c->api->arena);
        Str version = store_string(store_member(object, "apiVersion"), &c->api->arena);

        if ((str_is_empty(kind) || str_eq(kind, c->route->kind->kind)) &&
            (str_is_empty(version) || str_eq(version, c->route->kind->api_version)))
                return true;
        store_refuse(c->reply, 400, "BadRequest", NULL, STR(""),
                     "the object provided is a %.*s of %.*s, and the path is that of a " STR_FMT
                     " of " STR_FMT,
                     STR_CUT(kind, 64), STR_CUT(version, 64), STR_ARG(c->route->kind->kind),
                     STR_ARG(c->route->kind->api_version));
        return false;
}

bool mutation_begin(Mutation *c) {
        c->key = store_key(c->api, c->route);
        if (!c->key.data) {
                store_refuse_broken(c->reply, -ENOMEM);
                return false;
        }
        c->old = store_find(c->api->objects, c->route->kind, c->key);
        if (!c->old) {
                store_refuse_not_found(c->reply, c->route->kind, c->route->name);
                return false;
        }
        store_identity(c->old->text, &c->api->arena, &c->id);
        return true;
}
