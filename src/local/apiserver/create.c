/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>

#include "local/apiserver/mutation.h"

static uint64_t random_next(StoreApi *a) {
        uint64_t z = a->seed += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static Str new_uid(StoreApi *a) {
        uint64_t x = random_next(a), y = random_next(a);
        char text[40];

        (void) snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%012" PRIx64, (unsigned) (x >> 32),
                        (unsigned) (x >> 16) & 0xffff, (unsigned) x & 0xfff,
                        0x8000 | ((unsigned) (y >> 48) & 0x3fff), y & UINT64_C(0xffffffffffff));
        return arena_str(&a->arena, str_from(text));
}

/* Five letters that form no words, as the API server draws them. */
static Str generate_name(StoreApi *a, Str prefix) {
        static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
        char *name = arena_alloc(&a->arena, prefix.len + 5, 1);

        if (!name)
                return (Str){NULL, 0};
        memcpy(name, prefix.data, prefix.len);
        for (size_t i = 0; i < 5; i++)
                name[prefix.len + i] = letters[random_next(a) % (sizeof letters - 1)];
        return (Str){name, prefix.len + 5};
}

static bool name_new_object(Mutation *c, Str object, StoreRoute *route) {
        Arena *arena = &c->api->arena;

        store_identity(object, arena, &c->id);
        if (!str_is_empty(c->id.namespace_) && !str_eq(c->id.namespace_, route->namespace_)) {
                mutation_refuse_request(c,
                                        route->kind->namespaced
                                                ? "the namespace of the provided object does not match the "
                                                  "namespace sent on the request"
                                                : "metadata.namespace: not allowed on this type");
                return false;
        }
        if (str_is_empty(c->id.name)) {
                Str prefix = store_string(store_path(object, "metadata.generateName"), arena);

                if (!str_is_empty(prefix))
                        c->id.name = generate_name(c->api, prefix);
        }
        route->name = c->id.name;
        c->id = (StoreIdentity){
                .name = c->id.name,
                .namespace_ = route->namespace_,
                .uid = new_uid(c->api),
                .created = store_time(c->api->now, arena),
        };
        return true;
}

/* Sets the defaults of the API server that our programs read. Returns the object to store. */
static Str apply_defaults(Mutation *c, Str object, Str *status) {
        const StoreKind *kind = c->route->kind;

        if (str_eq(kind->plural, STR("nodes"))) /* kubelets register nodes with their status */
                return object;
        if (kind->status)
                *status = (Str){NULL, 0};
        if (!store_kind_is_pod(kind))
                return object;
        *status = STR("{\"phase\":\"Pending\"}");
        if (!store_is_null(store_path(object, "spec.schedulerName")))
                return object;
        buf_clear(&c->api->merged);
        if (store_merge_patch(object, STR("{\"spec\":{\"schedulerName\":\"default-scheduler\"}}"), false,
                              &c->api->arena, &c->api->merged) < 0)
                return (Str){NULL, 0};
        return buf_str(&c->api->merged);
}

void store_create(StoreApi *a, const StoreRoute *where, Str object, StoreReply *reply) {
        StoreRoute route = *where;
        Mutation c = {.api = a, .route = &route, .reply = reply};
        StoreViolation violation = {0};
        char resource[64];
        Str status;

        if (!store_is_object(object)) {
                mutation_refuse_request(&c, "the body must be an object");
                return;
        }
        if (!mutation_is_of_kind(&c, object) || !name_new_object(&c, object, &route) ||
            !mutation_valid(&c, store_validate(route.kind, object, &c.id, &violation), &violation))
                return;
        c.key = store_key(a, &route);
        if (store_find(a->objects, route.kind, c.key)) {
                store_kind_qualified(route.kind, resource, sizeof resource);
                store_refuse(reply, 409, "AlreadyExists", route.kind, route.name,
                             "%s \"" STR_FMT "\" already exists", resource, STR_ARG(route.name));
                return;
        }
        status = store_member(object, "status");
        object = apply_defaults(&c, object, &status);
        if (!object.data || !c.key.data || str_is_empty(c.id.uid)) {
                store_refuse_broken(reply, -ENOMEM);
                return;
        }
        mutation_commit(&c, STORE_CREATED, store_member(object, "metadata"), object, status, 201);
}
