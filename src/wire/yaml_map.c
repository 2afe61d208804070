/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>

#include "wire/yaml-internal.h"

enum { YAML_MAX_MERGED = 100 * 1000 };

void yaml_complain(Fault *fault, const YamlNode *at, const char *what, Str detail) {
        bool quote = !str_is_empty(detail);

        (void) fault_set(fault, YAML_E_MALFORMED, "line %u, column %u: %s%s" STR_FMT "%s", at->line,
                         at->column, what, quote ? " \"" : "", (int) (detail.len < 80 ? detail.len : 80),
                         detail.data ? detail.data : "", quote ? "\"" : "");
}

/* Adds to *n the number of members that a << value merges in. */
static int merge_count(const YamlNode *at, YamlNode *value, size_t *n, Fault *fault) {
        YamlNode *map = yaml_node_follow(value);

        if (map->type == YAML_NODE_LIST && !map->open) {
                for (YamlNode *element = map->first; element; element = element->next) {
                        if (yaml_node_follow(element)->type != YAML_NODE_MAP)
                                return yaml_refuse(fault, at, "a merge key takes a map or a list of maps",
                                                   STR(""));
                        *n += yaml_node_follow(element)->n_members;
                }
                return 0;
        }
        if (map->type != YAML_NODE_MAP)
                return yaml_refuse(fault, at, "a merge key takes a map or a list of maps", STR(""));
        *n += map->n_members;
        return 0;
}

static void merge_copy(YamlNode *map, const YamlNode *from) {
        for (size_t i = 0; i < from->n_members; i++) {
                map->members[map->n_members] = from->members[i];
                map->members[map->n_members].rank = map->n_members;
                map->members[map->n_members].merged = true;
                map->n_members++;
        }
}

static void merge_into(YamlNode *map, YamlNode *value) {
        YamlNode *from = yaml_node_follow(value);

        if (from->type == YAML_NODE_MAP)
                merge_copy(map, from);
        else
                for (YamlNode *element = from->first; element; element = element->next)
                        merge_copy(map, yaml_node_follow(element));
}

static int member_by_key(const void *a, const void *b) {
        const YamlMember *x = a, *y = b;
        int r = str_compare(x->key->text, y->key->text);

        return r != 0 ? r : (x->rank > y->rank) - (x->rank < y->rank);
}

static int member_by_rank(const void *a, const void *b) {
        const YamlMember *x = a, *y = b;

        return (x->rank > y->rank) - (x->rank < y->rank);
}

/* A merged member gives way to any earlier one of the same name. Two members of the map itself with
 * one name are refused. */
static int drop_shadowed(YamlNode *map, Fault *fault) {
        size_t kept = 0;

        if (map->n_members < 2)
                return 0;
        qsort(map->members, map->n_members, sizeof(YamlMember), member_by_key);
        for (size_t i = 0; i < map->n_members; i++) {
                YamlMember *m = &map->members[i];

                if (kept == 0 || !str_eq(map->members[kept - 1].key->text, m->key->text))
                        map->members[kept++] = *m;
                else if (!m->merged)
                        return yaml_refuse(fault, m->key, "duplicate key", m->key->text);
        }
        map->n_members = kept;
        qsort(map->members, map->n_members, sizeof(YamlMember), member_by_rank);
        return 0;
}

int yaml_map_close(YamlNode *map, Arena *arena, size_t *n_merged, Fault *fault) {
        size_t n = map->n_children / 2, n_copied = 0;
        int r;

        assert(map->n_children % 2 == 0);
        for (YamlNode *key = map->first; key; key = key->next->next)
                if (key->merge_key) {
                        r = merge_count(key, key->next, &n_copied, fault);
                        if (r != 0)
                                return r;
                }
        *n_merged += n_copied;
        if (*n_merged > YAML_MAX_MERGED)
                return yaml_refuse(fault, map, "merge keys copy more than 100000 members", STR(""));
        map->members = arena_new(arena, YamlMember, n + n_copied + 1);
        if (!map->members)
                return -ENOMEM;
        for (YamlNode *key = map->first; key; key = key->next->next)
                if (!key->merge_key) {
                        map->members[map->n_members] = (YamlMember){key, key->next, map->n_members, false};
                        map->n_members++;
                }
        for (YamlNode *key = map->first; key; key = key->next->next)
                if (key->merge_key)
                        merge_into(map, key->next);
        return drop_shadowed(map, fault);
}
