/* SPDX-License-Identifier: Apache-2.0 */
#include "local/manifest_check.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "local/manifest_fields.h"

typedef struct Check {
        Buf path; /* path of the object that is being checked */
        Fault *fault;
} Check;

static int compare_type(const void *key, const void *type) {
        return str_compare(*(const Str *) key, str_from(((const ManifestType *) type)->name));
}

static const ManifestType *find_type(Str name) {
        return bsearch(&name, manifest_types, manifest_n_types, sizeof manifest_types[0], compare_type);
}

/* Whether the type has this field. *ret_type: of its content; empty: any. */
static bool find_field(const ManifestType *type, const char *name, Str *ret_type) {
        Str rest = str_from(type->fields);

        while (rest.len > 0) {
                Str field = str_split(&rest, ' '), field_name = str_split(&field, ':');

                *ret_type = field;
                if (str_eq(field_name, str_from(name)))
                        return true;
        }
        return false;
}

/* The field that was probably meant: at most two letters differ. Empty: none. */
static Str find_meant(const ManifestType *type, const char *name) {
        Str rest = str_from(type->fields), best = {0};
        unsigned least = 3;

        while (rest.len > 0) {
                Str field = str_split(&rest, ' '), field_name = str_split(&field, ':');
                unsigned n = str_misspelling(str_from(name), field_name);

                if (n < least) {
                        least = n;
                        best = field_name;
                }
        }
        return best;
}

static int refuse_field(Check *c, const ManifestType *type, const char *name) {
        Str meant = find_meant(type, name);

        buf_appendf(&c->path, "%s%.100s", c->path.len > 0 ? "." : "", name);
        if (buf_result(&c->path) < 0)
                return -ENOMEM;
        if (str_is_empty(meant))
                return fault_set(c->fault, MANIFEST_CHECK_E_REFUSED,
                                 "strict decoding error: unknown field \"%s\"", c->path.data);
        return fault_set(c->fault, MANIFEST_CHECK_E_REFUSED,
                         "strict decoding error: unknown field \"%s\"; did you mean " STR_FMT "?",
                         c->path.data, STR_ARG(meant));
}

static int check_object(Check *c, const ManifestType *type, const json_t *object);

/* Checks a member's value, or each item where it is a list. */
static int check_member(Check *c, const ManifestType *type, const char *name, const json_t *value) {
        size_t before = c->path.len, list, i;
        const json_t *item;
        int r;

        buf_appendf(&c->path, "%s%.100s", before > 0 ? "." : "", name);
        list = c->path.len;
        r = check_object(c, type, value);
        json_array_foreach(value, i, item) {
                if (r != 0)
                        break;
                buf_appendf(&c->path, "[%zu]", i);
                r = check_object(c, type, item);
                c->path.len = list;
        }
        c->path.len = before;
        return r;
}

/* Checks the members of an object. What is no object is left to the checks of types. */
static int check_object(Check *c, const ManifestType *type, const json_t *object) {
        json_t *members = (json_t *) object, *value; /* the iterator takes no const */
        const char *name;

        json_object_foreach(members, name, value) {
                const ManifestType *of;
                Str of_name;
                int r;

                if (!find_field(type, name, &of_name))
                        return refuse_field(c, type, name);
                of = str_is_empty(of_name) ? NULL : find_type(of_name);
                r = of ? check_member(c, of, name, value) : 0;
                if (r != 0)
                        return r;
        }
        return 0;
}

/* ValidatePodSpec of pkg/apis/core/validation: each container of a manifest names its image, though
 * it is not used here. */
static int check_images(const json_t *spec, const char *path, const char *list, Fault *fault) {
        const json_t *one;
        size_t i;

        json_array_foreach(json_object_get(spec, list), i, one) {
                const json_t *image = json_object_get(one, "image");
                bool is_empty = json_is_string(image) && json_string_length(image) == 0;

                if (json_is_object(one) && (!image || json_is_null(image) || is_empty))
                        return fault_set(fault, MANIFEST_CHECK_E_REFUSED, "%s.%s[%zu].image: Required value",
                                         path, list, i);
        }
        return 0;
}

/* ---- tolerations and affinity ---- */

static const char *text_of(const json_t *object, const char *member) {
        const char *text = tree_text(object, member, NULL);

        return text ? text : "";
}

/* validateTolerations() of pkg/apis/core/validation. */
static int check_tolerations(const json_t *spec, const char *path, Fault *fault) {
        const json_t *one;
        size_t i;

        json_array_foreach(json_object_get(spec, "tolerations"), i, one) {
                bool exists = strcmp(text_of(one, "operator"), "Exists") == 0;

                if (!*text_of(one, "key") && !exists)
                        return fault_set(
                                fault, MANIFEST_CHECK_E_REFUSED,
                                "%s.tolerations[%zu].operator: Invalid value: \"%.40s\": operator must be "
                                "Exists when `key` is empty",
                                path, i, text_of(one, "operator"));
                if (exists && *text_of(one, "value"))
                        return fault_set(
                                fault, MANIFEST_CHECK_E_REFUSED,
                                "%s.tolerations[%zu].value: Invalid value: \"%.40s\": value must be empty "
                                "when `operator` is 'Exists'",
                                path, i, text_of(one, "value"));
        }
        return 0;
}

/* ValidateNodeSelectorRequirement(): how many values an operator has. */
static const char *requirement_wrong(const json_t *requirement) {
        const char *operator_ = text_of(requirement, "operator");
        size_t n = json_array_size(json_object_get(requirement, "values"));

        if (!*text_of(requirement, "key"))
                return "key: Required value";
        if (!*operator_)
                return "operator: Required value: In, NotIn, Exists, DoesNotExist, Gt or Lt";
        if ((strcmp(operator_, "In") == 0 || strcmp(operator_, "NotIn") == 0) && n == 0)
                return "values: Required value: must be specified when `operator` is 'In' or 'NotIn'";
        if ((strcmp(operator_, "Gt") == 0 || strcmp(operator_, "Lt") == 0) && n != 1)
                return "values: Required value: must be specified single value when `operator` is 'Lt' or "
                       "'Gt'";
        if ((strcmp(operator_, "Exists") == 0 || strcmp(operator_, "DoesNotExist") == 0) && n > 0)
                return "values: Forbidden: may not be specified when `operator` is 'Exists' or "
                       "'DoesNotExist'";
        return NULL;
}

static int check_affinity(const json_t *spec, const char *path, Fault *fault) {
        static const char *const lists[] = {"matchExpressions", "matchFields"};
        const json_t *terms =
                tree_at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                        "nodeSelectorTerms", NULL);
        const json_t *term, *one;
        size_t t, i;

        json_array_foreach(terms, t, term) {
                for (size_t k = 0; k < ELEMENTSOF(lists); k++) {
                        json_array_foreach(json_object_get(term, lists[k]), i, one) {
                                const char *wrong = requirement_wrong(one);

                                if (wrong)
                                        return fault_set(
                                                fault, MANIFEST_CHECK_E_REFUSED,
                                                "%s.affinity.nodeAffinity.requiredDuringScheduling"
                                                "IgnoredDuringExecution.nodeSelectorTerms[%zu].%s[%zu].%s",
                                                path, t, lists[k], i, wrong);
                        }
                }
        }
        return 0;
}

static int check_pod(const json_t *object, Fault *fault) {
        const json_t *template_ = tree_at(object, "spec", "template", "spec", NULL);
        const json_t *spec = template_ ? template_ : tree_at(object, "spec", NULL);
        const char *path = template_ ? "spec.template.spec" : "spec";
        int r = check_images(spec, path, "initContainers", fault);

        if (r == 0)
                r = check_images(spec, path, "containers", fault);
        if (r == 0)
                r = check_tolerations(spec, path, fault);
        if (r == 0)
                r = check_affinity(spec, path, fault);
        if (r == 0 && json_array_size(json_object_get(spec, "ephemeralContainers")) > 0)
                return fault_set(fault, MANIFEST_CHECK_E_REFUSED,
                                 "%s.ephemeralContainers: Forbidden: cannot be set on create", path);
        return r;
}

int manifest_check(const json_t *object, Fault *fault) {
        const ManifestType *type = find_type(str_from(tree_text(object, "kind", NULL)));
        Check c = {.fault = fault};
        int r;

        if (!type || tree_text(object, "metadata", "uid", NULL))
                return 0;
        r = check_object(&c, type, object);
        buf_done(&c.path);
        return r == 0 ? check_pod(object, fault) : r;
}
