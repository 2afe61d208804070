/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Settings of an installation for nodes without the annotation. They are put into the decoded node
 * where its annotation is absent, so that every reader of the annotation obeys them. */

#include "share/node_key.h"

typedef struct NodeDefaults {
        const char *values[NODE_KEYS_]; /* values by key; not owned; NULL: none */
} NodeDefaults;

enum { NODE_DEFAULTS_E_VALUE = 1 };

/* Sets the value of a key; text must outlive *d. Returns 0, or NODE_DEFAULTS_E_VALUE with a fault
 * that names the rule. */
int node_defaults_set(NodeDefaults *d, NodeKey key, const char *text, Fault *fault);

/* Fills in absent keys of the node. */
void node_defaults_apply(const NodeDefaults *d, Node *node);
