/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/budgets.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/json_field.h"

typedef enum Operator { OPERATOR_IN, OPERATOR_NOT_IN, OPERATOR_EXISTS, OPERATOR_ABSENT, OPERATORS_ } Operator;

typedef struct Term {
        Str key;
        Operator rule;
        const Str *values;
        size_t n_values;
} Term;

/* A budget; its arena holds all its texts and lists. */
struct Budget {
        UT_hash_handle hh;
        Arena arena;
        uint32_t generation;
        Str key, namespace_;
        bool selects; /* spec.selector is set */
        Term *terms;
        size_t n_terms;
        Str *disrupted; /* names of pods in status.disruptedPods */
        size_t n_disrupted;
        int64_t allowed;
};

/* ---- decoding ---- */

typedef struct Draft {
        Budget *budget;
        Str namespace_, name;
        Str selector, disrupted; /* text of the member; empty: absent or null */
        size_t terms_room, disrupted_room, n_values;
} Draft;

static void *grown_list(JsonReader *r, Arena *arena, void *items, size_t n, size_t *room, size_t size) {
        void *bigger;

        if (n < *room)
                return items;
        *room = *room > 0 ? 2 * *room : 4;
        bigger = arena_alloc(arena, *room, size);
        if (!bigger)
                json_no_memory(r);
        else if (n > 0)
                memcpy(bigger, items, n * size);
        return bigger;
}

static Term *term_add(JsonReader *r, Arena *arena, Draft *d) {
        Budget *b = d->budget;

        if (b->n_terms == BUDGET_TERMS_MAX) {
                json_fault(r, "more than 256 labels and expressions");
                return NULL;
        }
        b->terms = grown_list(r, arena, b->terms, b->n_terms, &d->terms_room, sizeof *b->terms);
        return b->terms ? &b->terms[b->n_terms++] : NULL;
}

static void read_match_labels(JsonReader *r, Arena *arena, void *ret) {
        Str key;

        JSON_EACH_MEMBER(r, &key) {
                Str *value = arena_new(arena, Str, 1);
                Term *term = value ? term_add(r, arena, ret) : NULL;

                if (!term) {
                        if (!value)
                                json_no_memory(r);
                        return;
                }
                *term = (Term){.key = json_plain_key(key, arena), .values = value, .n_values = 1};
                json_string(r, arena, value);
        }
}

typedef struct Expression {
        Draft *draft;
        Str key, operator;
        Str *values;
        size_t n_values, room;
} Expression;

static void read_values(JsonReader *r, Arena *arena, void *ret) {
        Expression *e = ret;

        JSON_EACH_ELEMENT(r) {
                if (e->draft->n_values == BUDGET_VALUES_MAX) {
                        json_fault(r, "more than 1024 values");
                        return;
                }
                e->values = grown_list(r, arena, e->values, e->n_values, &e->room, sizeof *e->values);
                if (!e->values)
                        return;
                e->values[e->n_values] = (Str){NULL, 0};
                json_string(r, arena, &e->values[e->n_values++]);
                e->draft->n_values++;
        }
}

static const JsonField expression_fields[] = {
        JSON_FIELD(Expression, key, "key", json_field_str),
        JSON_FIELD(Expression, operator, "operator", json_field_str),
        JSON_NESTED("values", read_values),
};

static void read_expressions(JsonReader *r, Arena *arena, void *ret) {
        static const char *const names[] = {
                [OPERATOR_IN] = "In",
                [OPERATOR_NOT_IN] = "NotIn",
                [OPERATOR_EXISTS] = "Exists",
                [OPERATOR_ABSENT] = "DoesNotExist",
        };

        JSON_EACH_ELEMENT(r) {
                Expression e = {.draft = ret};
                int op = 0;
                Term *term;

                json_field_decode(r, arena, expression_fields, ELEMENTSOF(expression_fields), &e);
                if (json_failed(r))
                        return;
                while (op < OPERATORS_ && !str_eq(e.operator, str_from(names[op])))
                        op++;
                if (op == OPERATORS_) {
                        json_fault(r, "the operator is none of In, NotIn, Exists, DoesNotExist");
                        return;
                }
                term = term_add(r, arena, ret);
                if (!term)
                        return;
                *term = (Term){
                        .key = e.key, .rule = (Operator) op, .values = e.values, .n_values = e.n_values};
        }
}

static const JsonField selector_fields[] = {
        JSON_NESTED("matchLabels", read_match_labels),
        JSON_NESTED("matchExpressions", read_expressions),
};

static void read_selector(JsonReader *r, Arena *arena, Draft *d) {
        d->budget->selects = true;
        json_field_decode(r, arena, selector_fields, ELEMENTSOF(selector_fields), d);
}

static void read_disrupted(JsonReader *r, Arena *arena, Draft *d) {
        Budget *b = d->budget;
        Str key;

        JSON_EACH_MEMBER(r, &key) {
                json_skip(r);
                b->disrupted = grown_list(r, arena, b->disrupted, b->n_disrupted, &d->disrupted_room,
                                          sizeof *b->disrupted);
                if (!b->disrupted)
                        return;
                b->disrupted[b->n_disrupted++] = json_plain_key(key, arena);
        }
}

static void read_member(JsonReader *r, Arena *arena, void *ret_str) {
        bool null = json_peek(r) == JSON_NULL;
        Str raw = {NULL, 0};

        json_raw(r, &raw);
        if (!null)
                *(Str *) ret_str = raw;
}

static void read_allowed(JsonReader *r, Arena *arena, void *ret) {
        json_i64(r, &((Draft *) ret)->budget->allowed);
}

static const JsonField metadata_fields[] = {
        JSON_FIELD(Draft, namespace_, "namespace", json_field_str),
        JSON_FIELD(Draft, name, "name", json_field_str),
};
static const JsonField spec_fields[] = {JSON_FIELD(Draft, selector, "selector", read_member)};
static const JsonField status_fields[] = {
        JSON_NESTED("disruptionsAllowed", read_allowed),
        JSON_FIELD(Draft, disrupted, "disruptedPods", read_member),
};

#define DECODER(name, fields)                                                                                \
        static void name(JsonReader *r, Arena *arena, void *ret) {                                           \
                json_field_decode(r, arena, fields, ELEMENTSOF(fields), ret);                                \
        }
DECODER(read_metadata, metadata_fields)
DECODER(read_spec, spec_fields)
DECODER(read_status, status_fields)

static const JsonField budget_fields[] = {
        JSON_NESTED("metadata", read_metadata),
        JSON_NESTED("spec", read_spec),
        JSON_NESTED("status", read_status),
};

/* Decodes one member. Its text is copied into the budget's arena first, because decoded texts point
 * into it. Returns 0, -ENOMEM, or JSON_E_MALFORMED with a fault. */
static int decode_member(Draft *d, Str text, void (*read)(JsonReader *r, Arena *arena, Draft *d),
                         Fault *fault) {
        Arena *arena = &d->budget->arena;
        JsonReader reader;
        Str copy;

        if (str_is_empty(text))
                return 0;
        copy = arena_str(arena, text);
        if (!copy.data)
                return -ENOMEM;
        json_init(&reader, copy);
        read(&reader, arena, d);
        return json_finish(&reader, fault);
}

static int decode_budget(Str object, Draft *d, Arena *arena, Fault *fault) {
        int r = json_field_read(object, arena, budget_fields, ELEMENTSOF(budget_fields), d, fault);

        if (r == 0)
                r = decode_member(d, d->selector, read_selector, fault);
        if (r == 0)
                r = decode_member(d, d->disrupted, read_disrupted, fault);
        if (r == 0 && str_is_empty(d->name))
                r = fault_set(fault, JSON_E_MALFORMED, "it has no name");
        if (r > 0)
                return fault_wrap(fault, BUDGET_E_MALFORMED, "poddisruptionbudget " STR_FMT "/" STR_FMT,
                                  STR_ARG(d->namespace_), STR_ARG(d->name));
        return r;
}

/* ---- the table ---- */

static Budget *budget_free(Budget *b) {
        if (!b)
                return NULL;
        arena_done(&b->arena);
        free(b);
        return NULL;
}
DEFINE_CLEANUP(Budget *, budget_free)

static int set_key(Budget *b, const Draft *d) {
        size_t len = d->namespace_.len + 1 + d->name.len;
        char *key = arena_alloc(&b->arena, len, 1);

        if (!key)
                return -ENOMEM;
        if (d->namespace_.len > 0)
                memcpy(key, d->namespace_.data, d->namespace_.len);
        key[d->namespace_.len] = '/';
        memcpy(key + d->namespace_.len + 1, d->name.data, d->name.len);
        b->key = (Str){key, len};
        b->namespace_ = (Str){key, d->namespace_.len};
        return 0;
}

static void drop_budget(Budgets *b, Str key) {
        Budget *old;

        HASH_FIND(hh, b->by_name, key.data, key.len, old);
        if (!old)
                return;
        HASH_DELETE(hh, b->by_name, old);
        (void) budget_free(old);
}

int budgets_set(Budgets *b, Str object, bool deleted, uint32_t generation, Fault *fault) {
        _cleanup_(budget_freep) Budget *budget = calloc(1, sizeof *budget);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Draft draft = {.budget = budget};
        int r;

        if (!budget)
                return -ENOMEM;
        r = decode_budget(object, &draft, &arena, fault);
        if (r == 0)
                r = set_key(budget, &draft);
        if (r != 0)
                return r;
        drop_budget(b, budget->key);
        if (deleted)
                return 0;
        budget->generation = generation;
        HASH_ADD_KEYPTR(hh, b->by_name, budget->key.data, budget->key.len, budget);
        if (!hash_added(budget, hh))
                return -ENOMEM;
        budget = NULL; /* now owned by the table */
        return 0;
}

size_t budgets_sweep(Budgets *b, uint32_t generation) {
        Budget *budget, *next;
        size_t dropped = 0;

        HASH_ITER(hh, b->by_name, budget, next) {
                if (budget->generation == generation)
                        continue;
                HASH_DELETE(hh, b->by_name, budget);
                (void) budget_free(budget);
                dropped++;
        }
        return dropped;
}

void budgets_done(Budgets *b) {
        Budget *budget, *next;

        HASH_ITER(hh, b->by_name, budget, next) {
                HASH_DELETE(hh, b->by_name, budget);
                (void) budget_free(budget);
        }
}

/* ---- matching ---- */

static bool has_value(const Term *t, Str value) {
        for (size_t i = 0; i < t->n_values; i++)
                if (str_eq(t->values[i], value))
                        return true;
        return false;
}

/* Whether the pod's labels satisfy the term (labels.Requirement.Matches of apimachinery). NotIn and
 * DoesNotExist hold for an absent label. */
static bool term_holds(const Term *t, const PodProfile *pod) {
        for (size_t i = 0; i < pod->n_labels; i++)
                if (str_eq(pod->labels[i].key, t->key))
                        return t->rule == OPERATOR_EXISTS ||
                               (t->rule == OPERATOR_IN && has_value(t, pod->labels[i].value)) ||
                               (t->rule == OPERATOR_NOT_IN && !has_value(t, pod->labels[i].value));
        return t->rule == OPERATOR_NOT_IN || t->rule == OPERATOR_ABSENT;
}

static bool matches_pod(const Budget *b, const Profile *pod) {
        if (!b->selects || !str_eq(b->namespace_, pod->namespace_))
                return false;
        for (size_t i = 0; i < b->n_terms; i++)
                if (!term_holds(&b->terms[i], &pod->is))
                        return false;
        for (size_t i = 0; i < b->n_disrupted; i++)
                if (str_eq(b->disrupted[i], pod->name))
                        return false;
        return true;
}

size_t budgets_of(const Budgets *b, const Profile *pod, const Budget *ret[static BUDGETS_OF_A_POD_MAX]) {
        size_t n = 0;

        if (pod->is.n_labels == 0)
                return 0;
        for (const Budget *budget = b->by_name; budget && n < BUDGETS_OF_A_POD_MAX; budget = budget->hh.next)
                if (matches_pod(budget, pod))
                        ret[n++] = budget;
        return n;
}

int64_t budget_allowed(const Budget *b) {
        return b->allowed;
}
