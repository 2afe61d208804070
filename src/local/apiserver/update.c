/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/mutation.h"

#define MODIFIED_MEANWHILE                                                                                   \
        "the object has been modified; please apply your changes to the latest version and try again"

/* Whether the new text agrees with the object's identity and version. Answers if not. */
static bool identity_holds(Mutation *c, Str object) {
        StoreIdentity claimed;
        uint64_t version = store_text_version(object);

        store_identity(object, &c->api->arena, &claimed);
        if (!str_is_empty(claimed.name) && !str_eq(claimed.name, c->id.name))
                mutation_refuse_request(c, "the name of the object does not match the name on the URL");
        else if (!str_is_empty(claimed.namespace_) && !str_eq(claimed.namespace_, c->id.namespace_))
                mutation_refuse_request(
                        c, "the namespace of the object does not match the namespace on the URL");
        else if (!str_is_empty(claimed.uid) && !str_eq(claimed.uid, c->id.uid))
                mutation_refuse_uid(c, claimed.uid);
        else if (!store_is_null(store_path(object, "metadata.resourceVersion")) && version != c->old->number)
                mutation_refuse_conflict(c, MODIFIED_MEANWHILE);
        else
                return true;
        return false;
}

/* Commits the new text. The main resource ignores status; /status ignores everything but status and
 * metadata. */
static void replace(Mutation *c, Str object) {
        Str old_status = store_member(c->old->text, "status"), metadata = store_member(object, "metadata");
        bool only_status = !str_is_empty(c->route->subresource);
        StoreViolation violation = {0};

        if (!mutation_is_of_kind(c, object) || !identity_holds(c, object))
                return;
        if (only_status) {
                mutation_commit(c, STORE_MODIFIED, metadata, c->old->text, store_member(object, "status"),
                                200);
                return;
        }
        if (!mutation_valid(c, store_validate(c->route->kind, object, &c->id, &violation), &violation) ||
            !mutation_valid(c, store_validate_update(c->route->kind, c->old->text, object, &violation),
                            &violation))
                return;
        mutation_commit(c, STORE_MODIFIED, metadata, object,
                        c->route->kind->status ? old_status : store_member(object, "status"), 200);
}

void store_update(StoreApi *a, const StoreRoute *route, Str object, StoreReply *reply) {
        Mutation c = {.api = a, .route = route, .reply = reply};

        if (!mutation_begin(&c))
                return;
        if (!store_is_object(object)) {
                mutation_refuse_request(&c, "the body must be an object");
                return;
        }
        if (route->kind->must_name_version && store_is_null(store_path(object, "metadata.resourceVersion"))) {
                store_refuse_invalid(reply, route->kind, route->name, "metadata.resourceVersion",
                                     "FieldValueInvalid",
                                     "Invalid value: 0x0: must be specified for an update");
                return;
        }
        replace(&c, object);
}

void store_patch(StoreApi *a, const StoreRoute *route, Str patch, bool strategic, StoreReply *reply) {
        Mutation c = {.api = a, .route = route, .reply = reply};
        int r;

        if (!mutation_begin(&c))
                return;
        if (!store_is_object(patch)) {
                mutation_refuse_request(&c, "a merge patch must be an object");
                return;
        }
        buf_clear(&a->merged);
        r = store_merge_patch(c.old->text, patch, strategic, &a->arena, &a->merged);
        if (r < 0)
                store_refuse_broken(reply, r);
        else
                replace(&c, buf_str(&a->merged));
}
