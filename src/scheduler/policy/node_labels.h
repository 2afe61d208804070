/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The labels of a node by which units of ResourcePolicies select; no other labels are kept. The
 * keys in use are in a hash table, so that the cost of a node does not grow with the number of
 * policies. */

#include "base/hash.h"
#include "scheduler/policy/policy_spec.h"

typedef struct NodeLabelKey {
        UT_hash_handle hh;
        size_t n; /* number of uses in selectors */
        size_t len;
        char text[];
} NodeLabelKey;

typedef struct NodeLabelKeys {
        NodeLabelKey *keys;
} NodeLabelKeys;

/* Adds the keys of all selectors of the policy, one use each. Returns 0, or -ENOMEM with *k
 * unchanged. */
int node_labels_want(NodeLabelKeys *k, const PolicySpec *spec);

/* Takes back node_labels_want() of an equal spec. */
void node_labels_unwant(NodeLabelKeys *k, const PolicySpec *spec);

typedef struct NodeLabels NodeLabels; /* one allocation; free() it */

/* Copies the wanted labels. Removes the others from *map. NULL: out of memory. */
NodeLabels *node_labels_new(const NodeLabelKeys *k, StringMap *map);
bool node_labels_are_equal(const NodeLabels *a, const NodeLabels *b); /* NULL equals nothing */

/* The index of the unit of a node with these labels (NULL: no labels); n_units: no unit has it. */
size_t node_labels_unit(const PolicySpec *spec, const NodeLabels *labels);
