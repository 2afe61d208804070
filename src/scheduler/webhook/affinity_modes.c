/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/affinity_modes.h"

#include <stddef.h>

#include "base/cleanup.h"
#include "share/mode.h"
#include "wire/annotation.h"
#include "wire/json_field.h"

enum { ALL_MODES = (1U << SHARE_MODE_UNKNOWN) - (1U << SHARE_MODE_SHARE) };

typedef struct Requirement {
        Str key, operator_;
        uint32_t listed; /* the modes among its values */
} Requirement;

typedef struct Term {
        uint32_t modes;
        size_t n; /* its requirements */
} Term;

typedef struct Selector {
        uint32_t modes;
        bool is_required;
} Selector;

static void read_values(JsonReader *r, Arena *arena, void *ret_modes) {
        JSON_EACH_ELEMENT(r) {
                Str value = {0};

                json_string(r, arena, &value);
                *(uint32_t *) ret_modes |= 1U << share_mode_from_label(value) & ALL_MODES;
        }
}

static const JsonField requirement_fields[] = {
        JSON_FIELD(Requirement, key, "key", json_field_str),
        JSON_FIELD(Requirement, operator_, "operator", json_field_str),
        JSON_FIELD(Requirement, listed, "values", read_values),
};

/* The other operators hold for no mode: the label is absent, or is a number. */
static uint32_t modes_of(const Requirement *one) {
        if (!str_eq(one->key, STR(LABEL_SCHEDULE)) || str_eq(one->operator_, STR("Exists")))
                return ALL_MODES;
        if (str_eq(one->operator_, STR("In")))
                return one->listed;
        return str_eq(one->operator_, STR("NotIn")) ? ALL_MODES & ~one->listed : 0;
}

static void read_expressions(JsonReader *r, Arena *arena, void *ret) {
        Term *term = ret;

        JSON_EACH_ELEMENT(r) {
                Requirement one = {0};

                json_field_decode(r, arena, requirement_fields, ELEMENTSOF(requirement_fields), &one);
                term->modes &= modes_of(&one);
                term->n++;
        }
}

static void count_fields(JsonReader *r, Arena *arena, void *ret) {
        Term *term = ret;

        (void) arena;
        JSON_EACH_ELEMENT(r) {
                json_skip(r);
                term->n++;
        }
}

static const JsonField term_fields[] = {
        JSON_NESTED("matchExpressions", read_expressions),
        JSON_NESTED("matchFields", count_fields),
};

/* One of the terms must hold. A term without requirements holds for no node. */
static void read_terms(JsonReader *r, Arena *arena, void *ret) {
        Selector *selector = ret;

        JSON_EACH_ELEMENT(r) {
                Term term = {ALL_MODES, 0};

                json_field_decode(r, arena, term_fields, ELEMENTSOF(term_fields), &term);
                selector->is_required = true;
                selector->modes |= term.n > 0 ? term.modes : 0;
        }
}

static const JsonField required_fields[] = {JSON_NESTED("nodeSelectorTerms", read_terms)};
JSON_DECODER(read_required, required_fields)

static const JsonField node_fields[] = {
        JSON_NESTED("requiredDuringSchedulingIgnoredDuringExecution", read_required),
};
JSON_DECODER(read_node_affinity, node_fields)

static const JsonField affinity_fields[] = {JSON_NESTED("nodeAffinity", read_node_affinity)};

uint32_t affinity_modes(Str affinity) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Selector selector = {0};

        if (str_is_empty(affinity) || json_field_read(affinity, &arena, affinity_fields,
                                                      ELEMENTSOF(affinity_fields), &selector, NULL) != 0)
                return ALL_MODES;
        return selector.is_required ? selector.modes : ALL_MODES;
}
