/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/node_labels.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct NodeLabels {
        StringMap map;
        StringPair pairs[];
};

/* The label of virtual nodes: a unit without a selector takes either these or all others. */
static StringPair virtual_node[] = {{.key = STR("type"), .value = STR("virtual-kubelet")}};
static const StringMap virtual_map = {virtual_node, 1};

/* ---- keys ---- */

static NodeLabelKey *find(const NodeLabelKeys *k, Str key) {
        NodeLabelKey *found;

        HASH_FIND(hh, k->keys, key.data, key.len, found);
        return found;
}

static int want(NodeLabelKeys *k, Str key) {
        NodeLabelKey *entry = find(k, key);

        if (entry) {
                entry->n++;
                return 0;
        }
        entry = calloc(1, sizeof *entry + key.len);
        if (!entry)
                return -ENOMEM;
        entry->n = 1;
        entry->len = key.len;
        if (key.len > 0)
                memcpy(entry->text, key.data, key.len);
        HASH_ADD_KEYPTR(hh, k->keys, entry->text, entry->len, entry);
        if (hash_added(entry, hh))
                return 0;
        free(entry);
        return -ENOMEM;
}

static void unwant(NodeLabelKeys *k, Str key) {
        NodeLabelKey *entry = find(k, key);

        if (!entry || --entry->n > 0)
                return;
        assert(k->keys); /* tells the analyzer that the table is not empty */
        HASH_DELETE(hh, k->keys, entry);
        free(entry);
}

/* Takes back one use of each of the first `most` keys, in the order of the units. */
static void unwant_first(NodeLabelKeys *k, const PolicySpec *spec, size_t most) {
        for (size_t u = 0; u < spec->n_units; u++)
                for (size_t i = 0; i < spec->units[u].selects.n && most > 0; i++, most--)
                        unwant(k, spec->units[u].selects.pairs[i].key);
}

int node_labels_want(NodeLabelKeys *k, const PolicySpec *spec) {
        size_t n = 0;

        for (size_t u = 0; u < spec->n_units; u++)
                for (size_t i = 0; i < spec->units[u].selects.n; i++, n++)
                        if (want(k, spec->units[u].selects.pairs[i].key) < 0) {
                                unwant_first(k, spec, n);
                                return -ENOMEM;
                        }
        return 0;
}

void node_labels_unwant(NodeLabelKeys *k, const PolicySpec *spec) {
        unwant_first(k, spec, SIZE_MAX);
}

/* ---- labels ---- */

/* Removes all pairs from the map but those of wanted keys and the label of virtual nodes. */
static void keep_wanted(const NodeLabelKeys *k, StringMap *map) {
        size_t n = 0;

        for (size_t i = 0; i < map->n; i++)
                if (str_eq(map->pairs[i].key, virtual_node[0].key) || find(k, map->pairs[i].key))
                        map->pairs[n++] = map->pairs[i];
        map->n = n;
}

NodeLabels *node_labels_new(const NodeLabelKeys *k, StringMap *map) {
        size_t text = 0;
        NodeLabels *l;
        char *at;

        keep_wanted(k, map);
        for (size_t i = 0; i < map->n; i++)
                text += map->pairs[i].key.len + map->pairs[i].value.len;
        l = malloc(sizeof *l + map->n * sizeof *l->pairs + text);
        if (!l)
                return NULL;
        at = (char *) (l->pairs + map->n);
        l->map = (StringMap){.pairs = l->pairs, .n = map->n};
        for (size_t i = 0; i < map->n; i++) {
                l->pairs[i].key = str_put(&at, map->pairs[i].key);
                l->pairs[i].value = str_put(&at, map->pairs[i].value);
        }
        return l;
}

bool node_labels_are_equal(const NodeLabels *a, const NodeLabels *b) {
        return a && b && a->map.n == b->map.n && string_map_has_all(&a->map, &b->map);
}

size_t node_labels_unit(const PolicySpec *spec, const NodeLabels *labels) {
        static const StringMap none = {0};
        const StringMap *map = labels ? &labels->map : &none;
        size_t k = 0;

        for (; k < spec->n_units; k++) {
                const PolicyUnit *u = &spec->units[k];

                if (u->any_node ? !string_map_has_all(map, &virtual_map)
                                : string_map_has_all(map, &u->selects))
                        break;
        }
        return k;
}
