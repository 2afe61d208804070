/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The labels of a node that units of ResourcePolicies select by; the others are not kept. The
 * wanted keys are in a hash table, so that what a node costs does not grow with the policies. */

#include "base/hash.h"
#include "scheduler/policy/policy_spec.h"

typedef struct NodeLabelKey {
        UT_hash_handle hh;
        size_t n; /* of selectors that name it */
        size_t len;
        char text[];
} NodeLabelKey;

typedef struct NodeLabelKeys {
        NodeLabelKey *keys;
} NodeLabelKeys;

/* The selectors of all units of the policy, once more. 0, or -ENOMEM: as before. */
int node_labels_want(NodeLabelKeys *k, const PolicySpec *spec);

/* After node_labels_want() of an equal spec. */
void node_labels_unwant(NodeLabelKeys *k, const PolicySpec *spec);

typedef struct NodeLabels NodeLabels; /* one allocation; free() it */

/* Copies what is wanted of the map, which is changed. NULL: out of memory. */
NodeLabels *node_labels_new(const NodeLabelKeys *k, StringMap *map);
bool node_labels_are_equal(const NodeLabels *a, const NodeLabels *b); /* NULL equals nothing */

/* The unit of a node with these labels (NULL: none); n_units: none. */
size_t node_labels_unit(const PolicySpec *spec, const NodeLabels *labels);
