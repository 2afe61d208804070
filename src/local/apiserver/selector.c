/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/selector.h"

#include <errno.h>

/* Grammar of labels (k8s.io/apimachinery/pkg/labels/selector.go): requirements joined by commas, of
 *     KEY   !KEY   KEY=V   KEY==V   KEY!=V   KEY in (V,...)   KEY notin (V,...)
 *
 * An absent label satisfies != and notin. */

static int malformed_requirement(const char *what, const char *selector, Fault *fault) {
        return fault_set(fault, STORE_SELECTOR_E_MALFORMED,
                         "unable to parse requirement: %s in selector \"%.200s\"", what, selector);
}

static int requirement_set(StoreRequirement *q, Arena *arena, Str key, StoreTest test, size_t n_values) {
        /* arena memory, which may be changed */
        q->key = (char *) (uintptr_t) arena_str(arena, str_trim(key)).data;
        q->test = test;
        q->values = arena_new(arena, Str, n_values + 1);
        q->n_values = n_values;
        return q->key && q->values ? 0 : -ENOMEM;
}

static bool is_label_key(Str key) {
        if (str_is_empty(key))
                return false;
        for (size_t i = 0; i < key.len; i++) {
                char c = key.data[i];
                bool alphanumeric =
                        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

                if (!alphanumeric && !strchr("-_./", c))
                        return false;
        }
        return true;
}

/* Parses `KEY in (a,b)`. text: the requirement with its parentheses. */
static int parse_set(StoreRequirement *q, Arena *arena, Str text, size_t open) {
        Str head = str_trim((Str){text.data, open}), list = {text.data + open + 1, text.len - open - 2}, key,
            word;
        size_t n = 1;
        StoreTest test;
        int r;

        key = head;
        while (key.len > 0 && key.data[key.len - 1] != ' ')
                key.len--;
        word = (Str){head.data + key.len, head.len - key.len};
        if (str_eq(word, STR("in")))
                test = STORE_TEST_IN;
        else if (str_eq(word, STR("notin")))
                test = STORE_TEST_NOT_IN;
        else
                return STORE_SELECTOR_E_MALFORMED;
        for (size_t i = 0; i < list.len; i++)
                n += list.data[i] == ',';
        r = requirement_set(q, arena, key, test, n);
        for (size_t i = 0; r == 0 && i < n; i++)
                q->values[i] = arena_str(arena, str_trim(str_split(&list, ',')));
        return r;
}

static int parse_comparison(StoreRequirement *q, Arena *arena, Str text) {
        const char *at = memchr(text.data, '=', text.len);
        size_t left, right;
        int r;

        if (!at) {
                bool absent = text.data[0] == '!';

                return requirement_set(q, arena, (Str){text.data + absent, text.len - absent},
                                       absent ? STORE_TEST_ABSENT : STORE_TEST_EXISTS, 0);
        }
        left = (size_t) (at - text.data);
        right = left + 1;
        if (right < text.len && text.data[right] == '=')
                right++;
        if (left > 0 && text.data[left - 1] == '!')
                left--;
        r = requirement_set(q, arena, (Str){text.data, left},
                            text.data[left] == '!' ? STORE_TEST_NOT_IN : STORE_TEST_IN, 1);
        if (r == 0)
                q->values[0] = arena_str(arena, str_trim((Str){text.data + right, text.len - right}));
        return r;
}

static int parse_requirement(StoreRequirement *q, Arena *arena, Str text) {
        const char *open = memchr(text.data, '(', text.len);
        int r;

        r = open ? (text.data[text.len - 1] == ')' ? parse_set(q, arena, text, (size_t) (open - text.data))
                                                   : STORE_SELECTOR_E_MALFORMED)
                 : parse_comparison(q, arena, text);
        if (r != 0)
                return r;
        return is_label_key(str_from(q->key)) ? 0 : STORE_SELECTOR_E_MALFORMED;
}

/* The text up to the next comma outside parentheses. */
static Str next_requirement(Str *rest) {
        size_t n = 0;
        Str head;

        for (bool inside = false; n < rest->len && (inside || rest->data[n] != ','); n++)
                inside = rest->data[n] == '(' || (inside && rest->data[n] != ')');
        head = (Str){rest->data, n};
        n += n < rest->len;
        rest->data += n;
        rest->len -= n;
        return str_trim(head);
}

static int parse_all(Arena *arena, const char *selector, StoreRequirement **ret, size_t *ret_n,
                     Fault *fault) {
        StoreRequirement *all = arena_new(arena, StoreRequirement, STORE_REQUIREMENTS_MAX);
        Str rest = str_from(selector);
        size_t n = 0;
        int r;

        if (!all)
                return -ENOMEM;
        while (rest.len > 0) {
                Str text = next_requirement(&rest);

                if (str_is_empty(text) || n == STORE_REQUIREMENTS_MAX)
                        return malformed_requirement(n == STORE_REQUIREMENTS_MAX ? "too many requirements"
                                                                                 : "nothing between commas",
                                                     selector, fault);
                r = parse_requirement(&all[n], arena, text);
                if (r > 0)
                        return malformed_requirement(
                                "expected KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (...) or KEY notin (...)",
                                selector, fault);
                if (r < 0)
                        return r;
                n++;
        }
        *ret = all;
        *ret_n = n;
        return 0;
}

static bool is_selectable(const StoreKind *kind, const char *field) {
        if (strcmp(field, "metadata.name") == 0 ||
            (kind->namespaced && strcmp(field, "metadata.namespace") == 0))
                return true;
        for (size_t i = 0; i < STORE_SELECTABLE_MAX && kind->selectable[i]; i++)
                if (strcmp(kind->selectable[i], field) == 0)
                        return true;
        return false;
}

static int check_fields(const StoreSelector *s, const StoreKind *kind, Fault *fault) {
        for (size_t i = 0; i < s->n_fields; i++) {
                const StoreRequirement *q = &s->fields[i];

                if (q->test > STORE_TEST_NOT_IN || q->n_values != 1)
                        return fault_set(
                                fault, STORE_SELECTOR_E_MALFORMED,
                                "invalid field selector: \"%.200s\" can only be compared by = and !=",
                                q->key);
                if (!is_selectable(kind, q->key))
                        return fault_set(fault, STORE_SELECTOR_E_MALFORMED,
                                         "field label not supported: %.200s", q->key);
        }
        return 0;
}

int store_selector_init(StoreSelector *s, const StoreKind *kind, Str namespace_, const char *label_selector,
                        const char *field_selector, Fault *fault) {
        int r = 0;

        *s = STORE_SELECTOR_NULL;
        if (!str_is_empty(namespace_)) {
                char *prefix = arena_alloc(&s->arena, namespace_.len + 1, 1);

                if (!prefix)
                        return -ENOMEM;
                memcpy(prefix, namespace_.data, namespace_.len);
                prefix[namespace_.len] = '/';
                s->key_prefix = (Str){prefix, namespace_.len + 1};
        }
        if (label_selector)
                r = parse_all(&s->arena, label_selector, &s->labels, &s->n_labels, fault);
        if (r == 0 && field_selector && strchr(field_selector, '('))
                return malformed_requirement("fields can only be compared by = and !=", field_selector,
                                             fault);
        if (r == 0 && field_selector)
                r = parse_all(&s->arena, field_selector, &s->fields, &s->n_fields, fault);
        return r == 0 ? check_fields(s, kind, fault) : r;
}

void store_selector_done(StoreSelector *s) {
        arena_done(&s->arena);
        *s = STORE_SELECTOR_NULL;
}

static bool requirement_holds(const StoreRequirement *q, bool present, Str value) {
        bool listed = false;

        for (size_t i = 0; i < q->n_values; i++)
                listed = listed || str_eq(q->values[i], value);
        switch (q->test) {
        case STORE_TEST_IN:
                return present && listed;
        case STORE_TEST_NOT_IN:
                return !present || !listed;
        case STORE_TEST_EXISTS:
                return present;
        case STORE_TEST_ABSENT:
        default:
                return !present;
        }
}

/* The text of a field as selectors compare it: booleans and numbers as written; null and absent
 * fields are "". */
static Str plain_text(Str value, Arena *arena) {
        if (store_is_null(value))
                return (Str){NULL, 0};
        return value.data[0] == '"' ? store_string(value, arena) : value;
}

bool store_selector_matches_key(const StoreSelector *s, Str key) {
        return str_has_prefix(key, s->key_prefix);
}

bool store_selector_matches(const StoreSelector *s, Str key, Str object) {
        _cleanup_arena_ Arena arena = ARENA_NULL;

        if (!store_selector_matches_key(s, key))
                return false;
        for (size_t i = 0; i < s->n_fields; i++)
                if (!requirement_holds(&s->fields[i], true,
                                       plain_text(store_path(object, s->fields[i].key), &arena)))
                        return false;
        if (s->n_labels == 0)
                return true;
        object = store_path(object, "metadata.labels");
        for (size_t i = 0; i < s->n_labels; i++) {
                Str value = store_member(object, s->labels[i].key);

                if (!requirement_holds(&s->labels[i], value.len > 0, plain_text(value, &arena)))
                        return false;
        }
        return true;
}
