/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/yaml-internal.h"

/* The limit of the JSON bytes that aliases and merge keys produce in a document. */
enum { YAML_MAX_REPEATED = 4 * 1024 * 1024 };

typedef struct Emitter {
        JsonWriter writer;
        unsigned repeating; /* how many aliases and merged members the current node is inside of */
        size_t repeated;    /* JSON bytes that finished outermost repeats wrote */
        size_t repeat_start;
} Emitter;

static int emit(Emitter *e, YamlNode *node, unsigned depth, Fault *fault);

static int emit_repeated(Emitter *e, YamlNode *node, const YamlNode *at, unsigned depth, Fault *fault) {
        int r;

        if (e->repeating++ == 0)
                e->repeat_start = e->writer.out->len;
        r = emit(e, node, depth, fault);
        if (--e->repeating == 0)
                e->repeated += e->writer.out->len - e->repeat_start;
        if (r == 0 && e->repeated > YAML_MAX_REPEATED)
                return yaml_refuse(fault, at, "aliases repeat more than 4 MiB", STR(""));
        return r;
}

static int emit_list(Emitter *e, const YamlNode *list, unsigned depth, Fault *fault) {
        json_write_array(&e->writer, NULL);
        for (YamlNode *element = list->first; element; element = element->next) {
                int r = emit(e, element, depth + 1, fault);

                if (r != 0)
                        return r;
        }
        json_write_array_end(&e->writer);
        return 0;
}

static int emit_map(Emitter *e, const YamlNode *map, unsigned depth, Fault *fault) {
        json_write_object(&e->writer, NULL);
        for (size_t i = 0; i < map->n_members; i++) {
                const YamlMember *m = &map->members[i];
                int r;

                json_write_key(&e->writer, m->key->text);
                r = m->merged ? emit_repeated(e, m->value, map, depth + 1, fault)
                              : emit(e, m->value, depth + 1, fault);
                if (r != 0)
                        return r;
        }
        json_write_object_end(&e->writer);
        return 0;
}

static int emit(Emitter *e, YamlNode *node, unsigned depth, Fault *fault) {
        if (e->repeating > 0 && e->repeated + (e->writer.out->len - e->repeat_start) > YAML_MAX_REPEATED)
                return yaml_refuse(fault, node, "aliases repeat more than 4 MiB", STR(""));
        if (depth > YAML_MAX_DEPTH)
                return yaml_refuse(fault, node, "nested deeper than 60 levels by its aliases", STR(""));
        switch (node->type) {
        case YAML_NODE_STRING:
                json_write_str(&e->writer, NULL, node->text);
                return 0;
        case YAML_NODE_LITERAL:
                json_write_raw(&e->writer, NULL, node->text);
                return 0;
        case YAML_NODE_LIST:
                return emit_list(e, node, depth, fault);
        case YAML_NODE_MAP:
                return emit_map(e, node, depth, fault);
        case YAML_NODE_ALIAS:
                return emit_repeated(e, node->target, node, depth, fault);
        }
        return 0;
}

int yaml_emit(YamlNode *root, Buf *out, Fault *fault) {
        Emitter e = {0};

        json_write_init(&e.writer, out);
        return emit(&e, root, 0, fault);
}
