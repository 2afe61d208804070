/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "local/apiserver/mutation.h"

enum { GRACE_DEFAULT = 30, GRACE_MAX = 365 * 24 * 3600 };

typedef struct DeleteOptions {
        bool has_grace;
        uint64_t grace;
        Str uid, version;
} DeleteOptions;

static bool parse_options(Mutation *c, const StoreCall *call, Str body, DeleteOptions *ret) {
        const char *query = store_query(call, "gracePeriodSeconds");
        Str grace = query && *query ? str_from(query) : store_member(body, "gracePeriodSeconds");

        *ret = (DeleteOptions){
                .uid = store_string(store_path(body, "preconditions.uid"), &c->api->arena),
                .version = store_string(store_path(body, "preconditions.resourceVersion"), &c->api->arena),
        };
        if (store_is_null(grace))
                return true;
        ret->has_grace = true;
        if (str_to_u64(grace, &ret->grace) && ret->grace <= GRACE_MAX)
                return true;
        mutation_refuse_request(c, "gracePeriodSeconds must be a whole number of seconds, at most a year");
        return false;
}

static bool preconditions_hold(Mutation *c, const DeleteOptions *o) {
        uint64_t version;

        if (!str_is_empty(o->uid) && !str_eq(o->uid, c->id.uid)) {
                mutation_refuse_uid(c, o->uid);
                return false;
        }
        if (!str_is_empty(o->version) && (!str_to_u64(o->version, &version) || version != c->old->number)) {
                mutation_refuse_conflict(c, "Precondition failed: the resourceVersion is another one");
                return false;
        }
        return true;
}

/* The grace period of a deletion, in seconds. Only a pod that a kubelet may be running gets one
 * (registry/core/pod, CheckGracefulDelete). */
static uint64_t grace_of(Mutation *c, const DeleteOptions *o) {
        Arena *arena = &c->api->arena;
        Str phase = store_string(store_path(c->old->text, "status.phase"), arena);
        uint64_t grace = GRACE_DEFAULT;

        if (!store_kind_is_pod(c->route->kind) ||
            str_is_empty(store_string(store_path(c->old->text, "spec.nodeName"), arena)) ||
            str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed")))
                return 0;
        if (o->has_grace)
                return o->grace;
        (void) str_to_u64(store_path(c->old->text, "spec.terminationGracePeriodSeconds"),
                          &grace); /* absent: 30 */
        return grace < GRACE_MAX ? grace : GRACE_MAX;
}

/* Sets deletionTimestamp. When the containers have ended, the kubelet deletes again, without grace.
 * A second request may shorten the period, never lengthen it. */
static void mark(Mutation *c, uint64_t grace) {
        Str text = c->old->text;

        if (str_is_empty(c->id.deletion) || grace < c->id.grace) {
                c->id.deletion = store_time(c->api->now + grace, &c->api->arena);
                c->id.grace = grace;
        }
        mutation_commit(c, STORE_MODIFIED, store_member(text, "metadata"), text, store_member(text, "status"),
                        200);
}

static void answer_deleted(Mutation *c) {
        if (store_kind_is_pod(c->route->kind)) {
                buf_append_str(&c->reply->body, buf_str(&c->api->composed));
                return;
        }
        buf_appendf(&c->reply->body,
                    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\","
                    "\"details\":"
                    "{\"name\":\"" STR_FMT "\",\"kind\":\"" STR_FMT "\",\"uid\":\"" STR_FMT "\"}}",
                    STR_ARG(c->id.name), STR_ARG(c->route->kind->plural), STR_ARG(c->id.uid));
}

void store_delete(StoreApi *a, const StoreRoute *route, const StoreCall *call, Str body, StoreReply *reply) {
        Mutation c = {.api = a, .route = route, .reply = reply};
        DeleteOptions options;
        uint64_t grace;
        int r;

        if (!mutation_begin(&c) || !parse_options(&c, call, body, &options) ||
            !preconditions_hold(&c, &options))
                return;
        grace = grace_of(&c, &options);
        if (grace > 0) {
                mark(&c, grace);
                return;
        }
        buf_clear(&a->composed);
        store_renumber(route->kind, c.old->text, store_version(a->objects) + 1, &a->composed);
        r = buf_result(&a->composed);
        if (r == 0)
                r = mutation_store(&c, STORE_DELETED, buf_str(&a->composed));
        if (r < 0) {
                store_refuse_broken(reply, r);
                return;
        }
        reply->status = 200;
        answer_deleted(&c);
}
