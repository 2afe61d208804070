/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tree that yaml.c builds of one document. yaml_map.c closes its maps, and yaml_emit.c writes
 * it as JSON. */

#include "base/arena.h"
#include "base/fault.h"
#include "wire/json_write.h"
#include "wire/yaml.h"

enum { YAML_MAX_DEPTH = 60 };

typedef enum YamlNodeType {
        YAML_NODE_STRING,
        YAML_NODE_LITERAL, /* a value that is not a string, such as null, true or 42: text is JSON already */
        YAML_NODE_LIST,
        YAML_NODE_MAP,
        YAML_NODE_ALIAS,
} YamlNodeType;

typedef struct YamlNode YamlNode;

typedef struct YamlMember {
        YamlNode *key, *value;
        size_t rank; /* position in the map; merged members stand behind the map's own */
        bool merged;
} YamlMember;

struct YamlNode {
        YamlNodeType type;
        bool merge_key; /* a plain << */
        bool open;      /* a list or map whose end has not been seen */
        unsigned line, column;
        Str text; /* of a scalar */
        /* The children: a list's elements, or a map's keys and values by turns. next: sibling. */
        YamlNode *first, *last, *next;
        YamlNode *target;    /* of an alias: the node that it repeats */
        YamlMember *members; /* only once the map is closed */
        size_t n_children, n_members;
};

/* The node itself, or the one that an alias repeats. */
static inline YamlNode *yaml_node_follow(YamlNode *node) {
        return node->type == YAML_NODE_ALIAS ? node->target : node;
}

/* Sets the fault: line and column, what, and the detail in quotes unless it is empty. */
void yaml_complain(Fault *fault, const YamlNode *at, const char *what, Str detail);

static inline int yaml_refuse(Fault *fault, const YamlNode *at, const char *what, Str detail) {
        yaml_complain(fault, at, what, detail);
        return YAML_E_MALFORMED;
}

/* Closes a map: its children, keys and values by turns, become its members. Merge keys are resolved
 * and duplicates refused. *n_merged counts, over the document, the members that merge keys copied.
 * Returns 0, YAML_E_MALFORMED or -ENOMEM. */
int yaml_map_close(YamlNode *map, Arena *arena, size_t *n_merged, Fault *fault);

/* Appends the tree as JSON. Returns 0 or YAML_E_MALFORMED; only buf_result(out) tells that memory
 * ran out. */
int yaml_emit(YamlNode *root, Buf *out, Fault *fault);
