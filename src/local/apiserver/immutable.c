/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "local/apiserver/validation.h"
#include "wire/json.h"

/* Most members of a pod's spec are immutable after creation. Clients that PUT write members in an
 * order of their own, so specs are compared by content. */

typedef enum Place { PLACE_SPEC, PLACE_CONTAINERS, PLACE_CONTAINER, PLACE_BELOW } Place;

static bool may_change(Place place, Str key) {
        if (place == PLACE_CONTAINER)
                return str_eq(key, STR("image"));
        return place == PLACE_SPEC &&
               (str_eq(key, STR("tolerations")) || str_eq(key, STR("activeDeadlineSeconds")) ||
                str_eq(key, STR("schedulingGates")));
}

static Place place_of(Place place, Str key) {
        bool containers = str_eq(key, STR("containers")) || str_eq(key, STR("initContainers"));

        return place == PLACE_SPEC && containers ? PLACE_CONTAINERS : PLACE_BELOW;
}

static int same(Str a, Str b, Place place, Arena *arena);

static int by_key(const void *a, const void *b) {
        return str_compare(((const StoreMember *) a)->key, ((const StoreMember *) b)->key);
}

/* The immutable members, in key order; null counts as absent. */
static int fixed_members(Str object, Place place, Arena *arena, StoreMember **ret, size_t *ret_n) {
        size_t n, kept = 0;
        int r;

        r = store_members(object, arena, ret, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                if (!may_change(place, (*ret)[i].key) && !store_is_null((*ret)[i].value))
                        (*ret)[kept++] = (*ret)[i];
        if (kept > 0)
                qsort(*ret, kept, sizeof **ret, by_key);
        *ret_n = kept;
        return 0;
}

static int same_objects(Str a, Str b, Place place, Arena *arena) {
        StoreMember *of_a = NULL, *of_b = NULL;
        size_t n_a = 0, n_b = 0;
        int r;

        r = fixed_members(a, place, arena, &of_a, &n_a);
        if (r == 0)
                r = fixed_members(b, place, arena, &of_b, &n_b);
        if (r < 0)
                return r;
        if (n_a != n_b)
                return 0;
        for (size_t i = 0; i < n_a; i++) {
                if (!str_eq(of_a[i].key, of_b[i].key))
                        return 0;
                r = same(of_a[i].value, of_b[i].value, place_of(place, of_a[i].key), arena);
                if (r <= 0)
                        return r;
        }
        return 1;
}

static int same_arrays(Str a, Str b, Place place, Arena *arena) {
        Place below = place == PLACE_CONTAINERS ? PLACE_CONTAINER : PLACE_BELOW;
        JsonReader of_a, of_b;
        int r = 1;

        json_init(&of_a, a);
        json_init(&of_b, b);
        (void) json_array_begin(&of_a);
        (void) json_array_begin(&of_b);
        while (r > 0) {
                bool more_a = json_array_next(&of_a), more_b = json_array_next(&of_b);
                Str x = {NULL, 0}, y = {NULL, 0};

                if (more_a != more_b)
                        return 0;
                if (!more_a)
                        return 1;
                json_raw(&of_a, &x);
                json_raw(&of_b, &y);
                r = same(x, y, below, arena);
        }
        return r;
}

/* Returns 1 when equal, 0 when not, or -ENOMEM. */
static int same(Str a, Str b, Place place, Arena *arena) {
        if (str_eq(a, b))
                return 1;
        if (str_is_empty(a) || str_is_empty(b) || a.data[0] != b.data[0])
                return 0;
        if (a.data[0] == '{')
                return same_objects(a, b, place, arena);
        if (a.data[0] == '[')
                return same_arrays(a, b, place, arena);
        return a.data[0] == '"' && str_eq(store_string(a, arena), store_string(b, arena));
}

/* Gates can only be taken off (ValidatePodUpdate, pkg/apis/core/validation): here all of them at
 * once. Returns 1, 0 or -ENOMEM. */
static int gates_may_become(Str old_spec, Str new_spec, Arena *arena) {
        Str gates = store_member(new_spec, "schedulingGates");

        if (str_is_empty(gates) || store_is_null(gates))
                return 1;
        return same(store_member(old_spec, "schedulingGates"), gates, PLACE_BELOW, arena);
}

int store_validate_update(const StoreKind *kind, Str old_object, Str new_object, StoreViolation *ret) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        int r;

        if (!store_kind_is_pod(kind))
                return 0;
        r = same(store_member(old_object, "spec"), store_member(new_object, "spec"), PLACE_SPEC, &arena);
        if (r > 0)
                r = gates_may_become(store_member(old_object, "spec"), store_member(new_object, "spec"),
                                     &arena);
        if (r < 0)
                return r;
        if (r > 0)
                return 0;
        (void) snprintf(ret->field, sizeof ret->field, "spec");
        ret->reason = "FieldValueForbidden";
        return fault_set(&ret->rule, STORE_VALID_E_RULE,
                         "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
                         "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`");
}
