/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/validation.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/quantity.h"
#include "local/apiserver/types.h"
#include "wire/json.h"

/* Messages as in k8s.io/apimachinery/pkg/util/validation and pkg/apis/core/validation. */

#define RULE_SUBDOMAIN                                                                                       \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "    \
        "and must start and end with an alphanumeric character"
#define RULE_LABEL                                                                                           \
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "    \
        "start and end with an alphanumeric character"
#define RULE_QUANTITY                                                                                        \
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

enum {
        /* Containers of a pod and resources of a container; bounds the cost of comparing all
         * pairs. */
        ITEMS_MAX = 256,
        LABEL_MAX = 63, /* characters of a DNS label, and of the value of a label */
        SUBDOMAIN_MAX = 253,
};

static void set_field(StoreViolation *v, const char *format, ...) _printf_(2, 3);
static void set_field(StoreViolation *v, const char *format, ...) {
        va_list args;

        va_start(args, format);
        /* a long path is cut, because it is only for people */
        (void) vsnprintf(v->field, sizeof v->field, format, args);
        va_end(args);
}

static int required_value(StoreViolation *v, const char *why) {
        v->reason = "FieldValueRequired";
        return fault_set(&v->rule, STORE_VALID_E_RULE, "Required value%s%s", *why ? ": " : "", why);
}

static int invalid_value(StoreViolation *v, Str value, const char *rule) {
        v->reason = "FieldValueInvalid";
        return fault_set(&v->rule, STORE_VALID_E_RULE, "Invalid value: \"%.*s\": %s", STR_CUT(value, 100),
                         rule);
}

/* A text that is too long has a sentence of its own, whatever its characters are. */
static int invalid_text(StoreViolation *v, Str value, size_t most, const char *rule) {
        char length[64];

        (void) snprintf(length, sizeof length, "must be no more than %zu characters", most);
        return invalid_value(v, value, value.len > most ? length : rule);
}

static int too_many(StoreViolation *v) {
        v->reason = "FieldValueTooMany";
        return fault_set(&v->rule, STORE_VALID_E_RULE, "Too many: must have at most %d items", ITEMS_MAX);
}

static int wrong_type(StoreViolation *v, const char *expected) {
        return fault_set(&v->rule, STORE_VALID_E_TYPE, "must be %s", expected);
}

static bool is_dns_part(Str s) {
        for (size_t i = 0; i < s.len; i++) {
                char c = s.data[i];
                bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

                if (!alphanumeric && (c != '-' || i == 0 || i == s.len - 1))
                        return false;
        }
        return s.len > 0;
}

static bool is_dns_label(Str s) {
        return s.len <= LABEL_MAX && is_dns_part(s);
}

bool store_is_dns_subdomain(Str name) {
        Str rest = name;

        if (name.len == 0 || name.len > SUBDOMAIN_MAX || name.data[name.len - 1] == '.')
                return false;
        while (rest.len > 0)
                if (!is_dns_part(str_split(&rest, '.')))
                        return false;
        return true;
}

/* ---- metadata ---- */

#define RULE_KEY                                                                                             \
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "   \
        "an "                                                                                                \
        "alphanumeric character"

static bool is_label_value(Str s);

/* IsQualifiedName(): a name, or a prefix, a slash and a name. The characters of a prefix are not
 * judged. Returns the rule that is broken; NULL: none. */
static const char *key_wrong(Str key) {
        const char *slash = memchr(key.data, '/', key.len);
        Str name = key, prefix = slash ? str_split(&name, '/') : STR("");

        if (slash && (str_is_empty(prefix) || prefix.len > SUBDOMAIN_MAX))
                return str_is_empty(prefix) ? "prefix part must be non-empty"
                                            : "prefix part must be no more than 253 characters";
        if (str_is_empty(name))
                return "name part must be non-empty";
        if (name.len > LABEL_MAX)
                return "name part must be no more than 63 characters";
        return is_label_value(name) ? NULL : RULE_KEY;
}

static int check_string_map(Str map, const char *field, Arena *arena, StoreViolation *v) {
        StoreMember *members;
        size_t n;
        int r;

        set_field(v, "%s", field);
        if (store_is_null(map))
                return 0;
        if (!store_is_object(map))
                return wrong_type(v, "an object whose values are strings");
        r = store_members(map, arena, &members, &n);
        for (size_t i = 0; r == 0 && i < n; i++) {
                set_field(v, "%s[%.*s]", field, STR_CUT(members[i].key, 100));
                if (members[i].value.data[0] != '"' && !store_is_null(members[i].value))
                        return store_types_wrong_string(v, members[i].value);
                if (key_wrong(members[i].key))
                        return invalid_value(v, members[i].key, key_wrong(members[i].key));
        }
        return r;
}

#define RULE_LABEL_VALUE                                                                                     \
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and " \
        "must start and end with an alphanumeric character"

static bool is_label_value(Str s) {
        for (size_t i = 0; i < s.len; i++) {
                char c = s.data[i];
                bool alphanumeric =
                        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

                if (!alphanumeric && ((c != '-' && c != '_' && c != '.') || i == 0 || i == s.len - 1))
                        return false;
        }
        return s.len <= LABEL_MAX;
}

/* Checks a map of labels: those of an object, or a pod's nodeSelector. */
static int check_labels(Str map, const char *field, Arena *arena, StoreViolation *v) {
        StoreMember *members;
        size_t n;
        int r = check_string_map(map, field, arena, v);

        if (r != 0 || store_is_null(map))
                return r;
        r = store_members(map, arena, &members, &n);
        for (size_t i = 0; r == 0 && i < n; i++) {
                Str value = store_is_null(members[i].value) ? STR("") : store_string(members[i].value, arena);

                set_field(v, "%s[%.*s]", field, STR_CUT(members[i].key, 100));
                if (!is_label_value(value))
                        return invalid_text(v, value, LABEL_MAX, RULE_LABEL_VALUE);
        }
        return r;
}

static int check_metadata(Str object, const StoreIdentity *id, Arena *arena, StoreViolation *v) {
        Str metadata = store_member(object, "metadata");
        int r;

        set_field(v, "metadata");
        if (!store_is_null(metadata) && !store_is_object(metadata))
                return wrong_type(v, "an object");
        set_field(v, "metadata.name");
        if (str_is_empty(id->name))
                return required_value(v, "name or generateName is required");
        if (!store_is_dns_subdomain(id->name))
                return invalid_text(v, id->name, SUBDOMAIN_MAX, RULE_SUBDOMAIN);
        set_field(v, "metadata.namespace");
        if (!str_is_empty(id->namespace_) && !is_dns_label(id->namespace_))
                return invalid_text(v, id->namespace_, LABEL_MAX, RULE_LABEL);
        r = check_labels(store_member(metadata, "labels"), "metadata.labels", arena, v);
        if (r == 0)
                r = check_string_map(store_member(metadata, "annotations"), "metadata.annotations", arena, v);
        return r;
}

/* ---- pods ---- */

typedef struct PodCheck {
        Arena *arena;
        StoreViolation *v;
        StoreMember *names; /* names of the containers so far, as keys */
        size_t n_names;
} PodCheck;

/* Whether the resource is an extended one, of which amounts are whole numbers. cpu, memory and
 * resources of kubernetes.io are not; they may be fractions. */
static bool is_extended(Str resource) {
        const char *slash = memchr(resource.data, '/', resource.len);

        return slash && !str_has_prefix(resource, STR("requests.")) &&
               !memmem(resource.data, (size_t) (slash - resource.data), "kubernetes.io",
                       strlen("kubernetes.io"));
}

static int check_quantity(PodCheck *c, Str resource, Str value) {
        Str text = store_string(value, c->arena);
        uint64_t amount;
        int r;

        if (value.data[0] != '"')
                return wrong_type(c->v, "a quantity: a string or a number");
        r = quantity_parse(text, &amount);
        if (r == QUANTITY_E_MALFORMED)
                return fault_set(&c->v->rule, STORE_VALID_E_TYPE, "\"%.*s\": " RULE_QUANTITY,
                                 STR_CUT(text, 100));
        if (r == QUANTITY_E_RANGE && text.data[0] == '-')
                return invalid_value(c->v, text, "must be greater than or equal to 0");
        if (is_extended(resource) && r == QUANTITY_E_FRACTION)
                return invalid_value(c->v, text, "must be an integer");
        if (is_extended(resource) && r == QUANTITY_E_RANGE)
                return invalid_value(c->v, text, "must be at most 9223372036854775807");
        return 0;
}

static int check_amounts(PodCheck *c, Str amounts, const char *list, size_t index, const char *which) {
        StoreMember *members;
        size_t n;
        int r;

        set_field(c->v, "spec.%s[%zu].resources.%s", list, index, which);
        if (store_is_null(amounts))
                return 0;
        if (!store_is_object(amounts))
                return wrong_type(c->v, "an object");
        r = store_members(amounts, c->arena, &members, &n);
        if (r == 0 && n > ITEMS_MAX)
                return too_many(c->v);
        for (size_t i = 0; r == 0 && i < n; i++) {
                set_field(c->v, "spec.%s[%zu].resources.%s[%.*s]", list, index, which,
                          STR_CUT(members[i].key, 100));
                r = check_quantity(c, members[i].key, members[i].value);
        }
        return r;
}

/* Checks requests of extended resources, which cannot be overcommitted: each needs a limit of the
 * same amount. */
static int check_requests(PodCheck *c, Str limits, Str requests, const char *list, size_t index) {
        StoreMember *members, *bounds;
        size_t n, n_bounds;
        int r;

        r = store_members(requests, c->arena, &members, &n);
        if (r == 0)
                r = store_members(limits, c->arena, &bounds, &n_bounds);
        for (size_t i = 0; r == 0 && i < n; i++) {
                uint64_t request = 0, limit = 0;
                Str found = {NULL, 0};

                if (!is_extended(members[i].key))
                        continue;
                for (size_t j = 0; j < n_bounds; j++)
                        if (str_eq(bounds[j].key, members[i].key))
                                found = bounds[j].value;
                set_field(c->v, "spec.%s[%zu].resources.%s", list, index,
                          str_is_empty(found) ? "limits" : "requests");
                if (str_is_empty(found))
                        return required_value(c->v, "Limit must be set for non overcommitable resources");
                if (quantity_parse(store_string(members[i].value, c->arena), &request) != 0 ||
                    quantity_parse(store_string(found, c->arena), &limit) != 0 || request != limit)
                        return invalid_value(c->v, store_string(members[i].value, c->arena),
                                             "must be equal to the limit");
        }
        return r;
}

static int check_name(PodCheck *c, Str name, const char *list, size_t index) {
        set_field(c->v, "spec.%s[%zu].name", list, index);
        if (str_is_empty(name))
                return required_value(c->v, "");
        if (!is_dns_label(name))
                return invalid_text(c->v, name, LABEL_MAX, RULE_LABEL);
        for (size_t i = 0; i < c->n_names; i++)
                if (str_eq(c->names[i].key, name)) {
                        c->v->reason = "FieldValueDuplicate";
                        return fault_set(&c->v->rule, STORE_VALID_E_RULE, "Duplicate value: \"" STR_FMT "\"",
                                         STR_ARG(name));
                }
        c->names[c->n_names++].key = name;
        return 0;
}

static int check_container(PodCheck *c, Str container, const char *list, size_t index) {
        Str resources = store_member(container, "resources"), limits, requests;
        int r;

        set_field(c->v, "spec.%s[%zu]", list, index);
        if (!store_is_object(container))
                return wrong_type(c->v, "an object");
        r = check_name(c, store_string(store_member(container, "name"), c->arena), list, index);
        if (r != 0)
                return r;
        set_field(c->v, "spec.%s[%zu].resources", list, index);
        if (!store_is_null(resources) && !store_is_object(resources))
                return wrong_type(c->v, "an object");
        limits = store_member(resources, "limits");
        requests = store_member(resources, "requests");
        r = check_amounts(c, limits, list, index, "limits");
        if (r == 0)
                r = check_amounts(c, requests, list, index, "requests");
        return r == 0 ? check_requests(c, limits, requests, list, index) : r;
}

static int check_containers(PodCheck *c, Str spec, const char *list, bool needed) {
        Str containers = store_member(spec, list), value;
        JsonReader r;
        size_t i = 0;
        int result = 0;

        set_field(c->v, "spec.%s", list);
        if (!store_is_null(containers) && containers.data[0] != '[')
                return wrong_type(c->v, "an array");
        json_init(&r, str_is_empty(containers) ? STR("[]") : containers);
        (void) json_array_begin(&r);
        for (; result == 0 && json_array_next(&r); i++) {
                if (c->n_names == ITEMS_MAX)
                        return too_many(c->v);
                json_raw(&r, &value);
                result = check_container(c, value, list, i);
        }
        return result == 0 && i == 0 && needed ? required_value(c->v, "") : result;
}

/* Resources of the pod as a whole, of which Kubernetes has three kinds (supportedPodLevelResources
 * of component-helpers/resource): a GPU there would be one of no container. */
static int check_pod_resources(Str spec, Arena *arena, StoreViolation *v) {
        static const char *const lists[] = {"limits", "requests"};
        Str resources = store_member(spec, "resources");
        int r = 0;

        for (size_t k = 0; k < ELEMENTSOF(lists) && r == 0; k++) {
                Str amounts = store_member(resources, lists[k]);
                StoreMember *members;
                size_t n = 0;

                if (store_is_object(amounts))
                        r = store_members(amounts, arena, &members, &n);
                for (size_t i = 0; r == 0 && i < n; i++) {
                        Str key = members[i].key;

                        if (str_eq(key, STR("cpu")) || str_eq(key, STR("memory")) ||
                            str_has_prefix(key, STR("hugepages-")))
                                continue;
                        set_field(v, "spec.resources.%s[%.*s]", lists[k], STR_CUT(key, 100));
                        v->reason = "FieldValueNotSupported";
                        return fault_set(&v->rule, STORE_VALID_E_RULE,
                                         "Unsupported value: \"%.*s\": supported values: \"cpu\", "
                                         "\"hugepages-\", \"memory\"",
                                         STR_CUT(key, 100));
                }
        }
        return r;
}

static int check_pod(Str object, Arena *arena, StoreViolation *v) {
        PodCheck c = {.arena = arena, .v = v, .names = arena_new(arena, StoreMember, ITEMS_MAX)};
        Str spec = store_member(object, "spec");
        int r;

        if (!c.names)
                return -ENOMEM;
        r = store_types_check_pod_spec(spec, v);
        if (r == 0)
                r = check_containers(&c, spec, "initContainers", false);
        if (r == 0)
                r = check_containers(&c, spec, "containers", true);
        if (r == 0)
                r = check_labels(store_member(spec, "nodeSelector"), "spec.nodeSelector", arena, v);
        return r == 0 ? check_pod_resources(spec, arena, v) : r;
}

int store_validate(const StoreKind *kind, Str object, const StoreIdentity *id, StoreViolation *ret) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        int r;

        r = check_metadata(object, id, &arena, ret);
        if (r != 0 || !store_kind_is_pod(kind))
                return r;
        return check_pod(object, &arena, ret);
}

int store_validate_annotations(Str annotations, StoreViolation *ret) {
        _cleanup_arena_ Arena arena = ARENA_NULL;

        return check_string_map(annotations, "metadata.annotations", &arena, ret);
}
