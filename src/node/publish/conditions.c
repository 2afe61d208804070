/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/conditions.h"

#include <stddef.h>

#include "wire/object-internal.h"

static const char *const types[] = {
        [CONDITION_CHANGE_PENDING] = CONDITION_TYPE_CHANGE_PENDING,
        [CONDITION_MISCONFIGURED] = CONDITION_TYPE_MISCONFIGURED,
        [CONDITION_DRIVER] = CONDITION_TYPE_DRIVER,
        [CONDITION_OTHER_PLUGIN] = CONDITION_TYPE_OTHER_PLUGIN,
        [CONDITION_CORDON] = CONDITION_TYPE_CORDON,
        [CONDITION_CARDS] = CONDITION_TYPE_CARDS,
        [CONDITION_LIMITS] = CONDITION_MEMORY_LIMITS,
};

const char *condition_type(ConditionKind kind) {
        return types[kind];
}

static void read_list(JsonReader *r, Arena *arena, void *ret) {
        ObjectCondition *conditions = ret, c;

        if (!json_array_begin(r))
                return;
        while (object_next_condition(r, arena, &c))
                for (int kind = 0; kind < CONDITIONS_; kind++)
                        if (str_eq(c.type, str_from(types[kind])))
                                conditions[kind] = c;
}

static const JsonField status_fields[] = {JSON_NESTED("conditions", read_list)};
JSON_DECODER(read_status, status_fields)

static const JsonField node_fields[] = {JSON_NESTED("status", read_status)};

int conditions_read(Str node, Arena *arena, ObjectCondition ret[static CONDITIONS_], Fault *fault) {
        ObjectCondition texts[CONDITIONS_] = {0};
        int e = json_field_read(node, arena, node_fields, ELEMENTSOF(node_fields), texts, fault);

        if (e != 0)
                return e < 0 ? e : CONDITIONS_E_MALFORMED;
        memcpy(ret, texts, sizeof texts);
        return 0;
}
