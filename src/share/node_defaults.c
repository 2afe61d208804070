/* SPDX-License-Identifier: Apache-2.0 */
#include "share/node_defaults.h"

int node_defaults_set(NodeDefaults *d, NodeKey key, const char *text, Fault *fault) {
        if (text[0] == '\0' || !node_key_is_good(key, str_from(text)))
                return fault_set(fault, NODE_DEFAULTS_E_VALUE, "must be %s", node_key_rule(key));
        d->values[key] = text;
        return 0;
}

void node_defaults_apply(const NodeDefaults *d, Node *node) {
        for (int key = 0; key < NODE_KEYS_; key++)
                if (d->values[key] && str_is_empty(node_key_get(node, (NodeKey) key)))
                        node_key_set(node, (NodeKey) key, str_from(d->values[key]));
}
