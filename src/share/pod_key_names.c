/* SPDX-License-Identifier: Apache-2.0 */
#include "share/pod_key_names.h"

#include <errno.h>
#include <stddef.h>

#include "share/node_key.h"
#include "wire/annotation.h"
#include "wire/json_field.h"
#include "wire/key_typo.h"
#include "wire/pod_gang.h"
#include "wire/resize_keys.h"
#include "wire/topology_keys.h"

typedef enum KeyKind { KEY_LABEL, KEY_ANNOTATION, KEY_SELECTOR, KEY_VARIABLE, KEY_LIMIT } KeyKind;

static const char *const kind_words[] = {
        [KEY_LABEL] = "label",  [KEY_ANNOTATION] = "annotation", [KEY_SELECTOR] = "nodeSelector",
        [KEY_VARIABLE] = "env", [KEY_LIMIT] = "limit",
};

enum { NAME_SHOWN = 63 };

/* `unset`: users do not set it, so it is not what they meant. */
static const struct {
        KeyKind kind;
        const char *name;
        bool unset;
        bool is_of_all; /* it is read on every object */
} known[] = {
        {KEY_LABEL, LABEL_POD_COUNT},
        {KEY_LABEL, LABEL_GANG_NAME},
        {KEY_LABEL, LABEL_GANG},
        {KEY_LABEL, LABEL_GANG_MIN},
        {KEY_LABEL, LABEL_TOPOLOGY_JOB},
        {KEY_LABEL, LABEL_TOPOLOGY_REPLICAS},
        {KEY_LABEL, "aliquot.dev/webhook", .is_of_all = true},
#define CARD_KEY(member, key, ...) {KEY_ANNOTATION, key},
        POD_CARD_KEYS(CARD_KEY)
#undef CARD_KEY
                {KEY_ANNOTATION, ANNOTATION_RESIZE_MEM},
        {KEY_ANNOTATION, ANNOTATION_RESIZE_CORE},
        {KEY_ANNOTATION, ANNOTATION_GANG_NAME},
        {KEY_ANNOTATION, ANNOTATION_GANG_MIN},
        {KEY_SELECTOR, LABEL_SCHEDULE},
        {KEY_SELECTOR, LABEL_PLACEMENT},
        {KEY_SELECTOR, LABEL_CARD_NAME},
        {KEY_SELECTOR, LABEL_CARD_MEM},
        {KEY_SELECTOR, LABEL_CARD_COUNT},
        {KEY_VARIABLE, ENVIRONMENT_DISABLE},
        {KEY_VARIABLE, ENVIRONMENT_WEIGHT},
        {KEY_VARIABLE, ENVIRONMENT_HIGH_PRIORITY},
        {KEY_LIMIT, RESOURCE_GPU_MEM},
        {KEY_LIMIT, RESOURCE_GPU_CORE},
        {KEY_LIMIT, RESOURCE_GPU_COUNT},
        {KEY_LIMIT, RESOURCE_GPU},
/* Written by scheduler and node agent. */
#define SYSTEM_KEY(member, key) {KEY_ANNOTATION, key, true},
        POD_SYSTEM_KEYS(SYSTEM_KEY)
#undef SYSTEM_KEY
                {KEY_ANNOTATION, ANNOTATION_KICK, true},
        {KEY_ANNOTATION, ANNOTATION_RESOURCE_POLICY, true},
        {KEY_VARIABLE, ENVIRONMENT_MEM_CONTAINER, true},
        {KEY_VARIABLE, ENVIRONMENT_MEM_DEV, true},
        {KEY_VARIABLE, ENVIRONMENT_MEM_POD, true},
        {KEY_VARIABLE, ENVIRONMENT_MEM_IDX, true},
        {KEY_VARIABLE, ENVIRONMENT_MEM_UNIT, true},
        /* Without an effect, which share/unserved_key.h says. */
        {KEY_LABEL, KEY_GANG_GROUPS, true},
        {KEY_ANNOTATION, KEY_GANG_GROUPS, true},
        {KEY_LABEL, KEY_GANG_MATCH, true},
        {KEY_ANNOTATION, KEY_GANG_MATCH, true},
        {KEY_ANNOTATION, ANNOTATION_GANG_GROUPS, true},
        {KEY_ANNOTATION, ANNOTATION_GANG_MATCH, true},
        {KEY_LABEL, LABEL_POD_GROUP, true},
};

/* Labels and annotations are searched together, because a key may have been set as the other
 * kind. */
static bool may_mean(KeyKind kind, KeyKind meant) {
        return kind == meant || (kind <= KEY_ANNOTATION && meant <= KEY_ANNOTATION);
}

/* The index of the key that was meant; -1: the name is known, or close to none. */
static int key_meant(KeyKind kind, Str name) {
        unsigned least = KEY_TYPO_NONE;
        int meant = -1;

        for (size_t i = 0; i < ELEMENTSOF(known); i++) {
                unsigned d;

                if (known[i].kind == kind && str_eq(name, str_from(known[i].name)))
                        return -1;
                if (known[i].unset || !may_mean(kind, known[i].kind))
                        continue;
                d = key_typo_distance(name, known[i].name);
                meant = d < least ? (int) i : meant;
                least = d < least ? d : least;
        }
        return meant;
}

/* Whether the key configures nodes. */
static bool is_of_nodes(KeyKind kind, Str name) {
        for (int key = 0; key < NODE_KEYS_ && kind <= KEY_ANNOTATION; key++)
                if (str_eq(name, str_from(node_key_name((NodeKey) key))))
                        return true;
        return false;
}

/* ---- the pod's text ---- */

typedef struct NamesCheck {
        Buf *out;
        Str container; /* the name of the container that is read; empty: the pod itself */
        bool is_init;
        unsigned said;
} NamesCheck;

static void check_name(NamesCheck *c, KeyKind kind, Str name) {
        bool of_nodes = is_of_nodes(kind, name);
        int i = of_nodes ? 0 : key_meant(kind, name);
        Fault said = FAULT_NULL;

        if (i < 0 || c->said++ >= POD_KEY_NAMES_SAID)
                return;
        if (!str_is_empty(c->container))
                buf_appendf(c->out, "%s \"%.*s\": ", c->is_init ? "init container" : "container",
                            STR_CUT(c->container, NAME_SHOWN));
        if (of_nodes)
                (void) fault_set(&said, 0, "%s %.*s is read on nodes and changes nothing on a pod",
                                 kind_words[kind], STR_CUT(name, NAME_SHOWN));
        else if (kind == KEY_LIMIT || kind == KEY_SELECTOR) /* no node has it: the pod would wait */
                (void) fault_set(&said, 0, "%s %.*s is no %s of aliquot: did you mean %s?", kind_words[kind],
                                 STR_CUT(name, NAME_SHOWN), kind == KEY_LIMIT ? "resource" : "label",
                                 known[i].name);
        else
                key_typo_complain(kind_words[kind], name, kind_words[known[i].kind], known[i].name, &said);
        buf_appendf(c->out, "%s\n", said.text);
}

static void check_members(JsonReader *r, KeyKind kind, NamesCheck *c) {
        Str name;

        JSON_EACH_MEMBER(r, &name) {
                check_name(c, kind, name);
                json_skip(r);
        }
}

static void read_labels(JsonReader *r, Arena *arena, void *check) {
        check_members(r, KEY_LABEL, check);
}

static void read_annotations(JsonReader *r, Arena *arena, void *check) {
        check_members(r, KEY_ANNOTATION, check);
}

static void read_selector(JsonReader *r, Arena *arena, void *check) {
        check_members(r, KEY_SELECTOR, check);
}

/* Its name may stand behind what is judged. */
typedef struct Container {
        Str name, env, resources; /* the last two: texts */
} Container;

static const JsonField variable_fields[] = {{STR("name"), json_field_str, 0}};

static void check_environment(Str text, Arena *arena, NamesCheck *c) {
        JsonReader r;

        json_init(&r, text);
        JSON_EACH_ELEMENT(&r) {
                Str name = {0};

                json_field_decode(&r, arena, variable_fields, ELEMENTSOF(variable_fields), &name);
                check_name(c, KEY_VARIABLE, name);
        }
}

static void read_limits(JsonReader *r, Arena *arena, void *check) {
        check_members(r, KEY_LIMIT, check);
}

static const JsonField resources_fields[] = {JSON_NESTED("limits", read_limits)};
static const JsonField container_fields[] = {
        JSON_FIELD(Container, name, "name", json_field_str),
        JSON_FIELD(Container, env, "env", json_field_raw),
        JSON_FIELD(Container, resources, "resources", json_field_raw),
};

static void read_containers(JsonReader *r, Arena *arena, NamesCheck *c) {
        JSON_EACH_ELEMENT(r) {
                Container one = {.name = {0}};

                json_field_decode(r, arena, container_fields, ELEMENTSOF(container_fields), &one);
                if (json_failed(r))
                        return;
                c->container = str_is_empty(one.name) ? STR("?") : one.name;
                if (!str_is_empty(one.env))
                        check_environment(one.env, arena, c);
                if (!str_is_empty(one.resources))
                        (void) json_field_read(one.resources, arena, resources_fields,
                                               ELEMENTSOF(resources_fields), c,
                                               NULL); /* another type: pod_decode() says it */
                c->container = (Str){0};
        }
}

static void read_main(JsonReader *r, Arena *arena, void *check) {
        ((NamesCheck *) check)->is_init = false;
        read_containers(r, arena, check);
}

static void read_init(JsonReader *r, Arena *arena, void *check) {
        ((NamesCheck *) check)->is_init = true;
        read_containers(r, arena, check);
}

static const JsonField metadata_fields[] = {
        JSON_NESTED("labels", read_labels),
        JSON_NESTED("annotations", read_annotations),
};
JSON_DECODER(read_metadata, metadata_fields)

static const JsonField spec_fields[] = {
        JSON_NESTED("nodeSelector", read_selector),
        JSON_NESTED("containers", read_main),
        JSON_NESTED("initContainers", read_init),
};
JSON_DECODER(read_spec, spec_fields)

static const JsonField pod_fields[] = {JSON_NESTED("metadata", read_metadata),
                                       JSON_NESTED("spec", read_spec)};

int pod_key_names_check(Str pod, Arena *arena, Buf *out) {
        NamesCheck c = {.out = out};
        int r = json_field_read(pod, arena, pod_fields, ELEMENTSOF(pod_fields), &c, NULL);

        return r < 0 ? r : buf_result(out);
}

/* ---- a workload's own metadata ---- */

typedef struct OuterCheck {
        Buf *out;
        const char *path;        /* of the template */
        Str labels, annotations; /* of the template: texts; empty: absent */
        unsigned said;
} OuterCheck;

static bool has_member(Str text, Str name) {
        JsonReader r;
        bool has = false;
        Str key;

        json_init(&r, text);
        JSON_EACH_MEMBER(&r, &key) {
                has |= str_eq(key, name);
                json_skip(&r);
        }
        return has;
}

/* The index of the key that the name is, or was probably meant to be; -1: none that users set. */
static int key_named(KeyKind kind, Str name) {
        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (known[i].kind == kind && str_eq(name, str_from(known[i].name)))
                        return known[i].unset ? -1 : (int) i;
        return key_meant(kind, name);
}

static void check_outer_name(OuterCheck *c, KeyKind kind, Str name) {
        bool of_nodes = is_of_nodes(kind, name);
        int i = of_nodes ? 0 : key_named(kind, name);

        if (i < 0 || (!of_nodes && known[i].is_of_all) ||
            has_member(kind == KEY_LABEL ? c->labels : c->annotations, name) ||
            c->said++ >= POD_KEY_NAMES_SAID)
                return;
        buf_appendf(c->out, "%s %.*s of the workload itself changes nothing: ", kind_words[kind],
                    STR_CUT(name, NAME_SHOWN));
        if (of_nodes)
                buf_append_str(c->out, STR("it is read on nodes\n"));
        else
                buf_appendf(c->out, "%s %s is read in %smetadata\n", kind_words[known[i].kind], known[i].name,
                            c->path);
}

static void check_outer_members(JsonReader *r, KeyKind kind, OuterCheck *c) {
        Str name;

        JSON_EACH_MEMBER(r, &name) {
                check_outer_name(c, kind, name);
                json_skip(r);
        }
}

static void read_outer_labels(JsonReader *r, Arena *arena, void *check) {
        (void) arena;
        check_outer_members(r, KEY_LABEL, check);
}

static void read_outer_annotations(JsonReader *r, Arena *arena, void *check) {
        (void) arena;
        check_outer_members(r, KEY_ANNOTATION, check);
}

static const JsonField outer_fields[] = {
        JSON_NESTED("labels", read_outer_labels),
        JSON_NESTED("annotations", read_outer_annotations),
};

static const JsonField template_metadata_fields[] = {
        JSON_FIELD(OuterCheck, labels, "labels", json_field_raw),
        JSON_FIELD(OuterCheck, annotations, "annotations", json_field_raw),
};
JSON_DECODER(read_template_metadata, template_metadata_fields)

static const JsonField template_fields[] = {JSON_NESTED("metadata", read_template_metadata)};

int pod_key_names_check_outer(Str metadata, Str pod, const char *path, Arena *arena, Buf *out) {
        OuterCheck c = {.out = out, .path = path};
        int r = json_field_read(pod, arena, template_fields, ELEMENTSOF(template_fields), &c, NULL);

        if (r == 0)
                r = json_field_read(metadata, arena, outer_fields, ELEMENTSOF(outer_fields), &c, NULL);
        return r < 0 ? r : buf_result(out);
}
