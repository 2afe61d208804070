/* SPDX-License-Identifier: Apache-2.0 */
#include "local/pod_environment.h"

#include <errno.h>

#include "share/environment.h"
#include "wire/annotation.h"

/* --- the slice -------------------------------------------------------------------------------- */

typedef struct Giving {
        Variables *variables;
        int r;
} Giving;

static void give_variable(void *userdata, const char *name, Str value) {
        Giving *g = userdata;

        if (g->r == 0)
                g->r = variables_set(g->variables, str_from(name), value);
}

static int give_slice(const BoundPod *place, ContainerKind kind, uint32_t index, Variables *v) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Giving giving = {.variables = v};
        PodSlices s;
        int r;

        r = pod_slices_read(place, kind, index, &arena, &s);
        if (r < 0 || s.n == 0)
                return r;
        if (share_mode_has_whole(s.mode))
                r = environment_make_whole(s.own, s.n, s.cards, s.n_cards, give_variable, &giving);
        else
                r = environment_make(s.own, s.n, s.pod_units, s.unit, s.cards, s.n_cards, give_variable,
                                     &giving);
        return r < 0 ? r : giving.r;
}

/* --- what the pod sets ------------------------------------------------------------------------ */

/* The value of metadata.annotations['key'] and the like; NULL when the pod has none. */
static const char *subscripted_value(const json_t *pod, const char *path, const char *field) {
        size_t n = strlen(field);
        Str key = str_from(path);

        if (strncmp(path, "metadata.", 9) != 0 || strncmp(path + 9, field, n) != 0)
                return NULL;
        key = (Str){path + 9 + n, key.len - 9 - n};
        if (key.len < 5 || !str_has_prefix(key, STR("['")) || memcmp(key.data + key.len - 2, "']", 2) != 0)
                return NULL;
        return json_string_value(
                json_object_getn(tree_at(pod, "metadata", field, NULL), key.data + 2, key.len - 4));
}

static const char *field_value(const BoundPod *place, const char *path) {
        static const char *const metadata[] = {"name", "namespace", "uid"};

        for (size_t i = 0; i < ELEMENTSOF(metadata); i++)
                if (strncmp(path, "metadata.", 9) == 0 && strcmp(path + 9, metadata[i]) == 0)
                        return tree_text(place->pod, "metadata", metadata[i], NULL);
        if (strcmp(path, "spec.nodeName") == 0)
                return tree_text(place->pod, "spec", "nodeName", NULL);
        if (strcmp(path, "spec.serviceAccountName") == 0) {
                const char *account = tree_text(place->pod, "spec", "serviceAccountName", NULL);

                return account ? account : "default";
        }
        if (strncmp(path, "metadata.annotations[", 21) == 0) {
                const char *value = subscripted_value(place->pod, path, "annotations");

                /* an absent field gives an empty variable, as with the kubelet */
                return value ? value : "";
        }
        if (strncmp(path, "metadata.labels[", 16) == 0) {
                const char *value = subscripted_value(place->pod, path, "labels");

                return value ? value : "";
        }
        return NULL;
}

static int set_one(const BoundPod *place, const json_t *entry, const Variables *known, Variables *v,
                   Buf *notes) {
        const char *name = tree_text(entry, "name", NULL), *value = tree_text(entry, "value", NULL);
        const char *path = tree_text(entry, "valueFrom", "fieldRef", "fieldPath", NULL);
        _cleanup_buf_ Buf expanded = BUF_NULL;

        if (!name || !*name || strchr(name, '='))
                return 0;
        if (!json_object_get(entry, "valueFrom")) {
                variables_expand(known, str_from(value ? value : ""), &expanded);
                return buf_result(&expanded) < 0 ? -ENOMEM
                                                 : variables_set(v, str_from(name), buf_str(&expanded));
        }
        value = path ? field_value(place, path) : NULL;
        if (value)
                return variables_set(v, str_from(name), str_from(value));
        buf_appendf(notes, "(env %s: this cluster does not resolve its valueFrom; it is left out)\n", name);
        return 0;
}

static int set_own(const BoundPod *place, const json_t *container, Variables *v, Buf *notes) {
        /* $(NAME) refers to the pod's own variables only */
        _cleanup_variables_ Variables own = VARIABLES_NULL;
        const json_t *entries = json_object_get(container, "env"), *entry;
        size_t i;
        int r = 0;

        json_array_foreach(entries, i, entry) {
                r = r < 0 ? r : set_one(place, entry, &own, &own, notes);
        }
        for (i = 0; i < own.n && r == 0; i++) {
                Str value = str_from(own.items[i]), name = str_split(&value, '=');

                r = variables_set(v, name, value);
        }
        if (json_array_size(json_object_get(container, "envFrom")) > 0)
                buf_append_str(notes, STR("(envFrom: this cluster does not resolve it; it is left out)\n"));
        return r;
}

int pod_environment_make(const BoundPod *place, const json_t *container, ContainerKind kind, uint32_t index,
                         Variables *ret, Buf *notes) {
        const char *hostname = tree_text(place->pod, "spec", "hostname", NULL);
        int r;

        if (!hostname)
                hostname = tree_text(place->pod, "metadata", "name", NULL);
        r = variables_set(ret, STR("PATH"),
                          STR("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
        if (r == 0)
                /* the only directory that the container can write to */
                r = variables_set(ret, STR("HOME"), STR("/tmp"));
        if (r == 0)
                r = variables_set(ret, STR("HOSTNAME"), str_from(hostname));
        if (r == 0)
                r = give_slice(place, kind, index, ret);
        return r < 0 ? r : set_own(place, container, ret, notes);
}

/* --- for people ------------------------------------------------------------------------------- */

static const char *const contract[] = {
        ENVIRONMENT_MEM_CONTAINER, ENVIRONMENT_MEM_DEV,  ENVIRONMENT_MEM_POD,
        ENVIRONMENT_MEM_IDX,       ENVIRONMENT_MEM_UNIT, ENVIRONMENT_VISIBLE_DEVICES,
        ENVIRONMENT_DISABLE,       ENVIRONMENT_WEIGHT,   ENVIRONMENT_HIGH_PRIORITY,
};

static bool is_in_contract(Str name) {
        for (size_t i = 0; i < ELEMENTSOF(contract); i++)
                if (str_eq(name, str_from(contract[i])))
                        return true;
        return false;
}

/* Prints a variable in one line: a newline in its value would look like another variable, or
 * another container's heading. */
static void print_one(Buf *out, Str name, const char *value) {
        buf_appendf(out, STR_FMT "=", STR_ARG(name));
        for (; *value; value++) {
                if (*value == '\n')
                        buf_append_str(out, STR("\\n"));
                else
                        buf_append_char(out, *value);
        }
        buf_append_char(out, '\n');
}

void pod_environment_print(const Variables *v, Buf *out) {
        for (size_t i = 0; i < ELEMENTSOF(contract); i++) {
                const char *value = variables_get(v, str_from(contract[i]));

                if (value)
                        print_one(out, str_from(contract[i]), value);
        }
        for (size_t i = 0; i < v->n; i++) {
                Str value = str_from(v->items[i]), name = str_split(&value, '=');

                if (is_in_contract(name))
                        continue;
                if (str_has_prefix(name, STR("CGPU_")) || str_has_prefix(name, STR("ALIYUN_")) ||
                    str_has_prefix(name, STR("NVIDIA_")))
                        print_one(out, name, v->items[i] + name.len + 1);
        }
}
