/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Settings of an installation that hold on every node whose annotations do not say them. They are
 * put into the decoded node where its annotation is absent, so that whatever reads the annotation
 * obeys them. */

#include "share/node_key.h"

typedef struct NodeDefaults {
        const char *values[NODE_KEYS_]; /* NULL: not said. The caller's, who keeps them */
} NodeDefaults;

enum { NODE_DEFAULTS_E_VALUE = 1 };

/* text: kept, not copied. 0, or NODE_DEFAULTS_E_VALUE with a fault that names the option (the
 * annotation's name without its prefix), the value and the rule. */
int node_defaults_set(NodeDefaults *d, NodeKey key, const char *text, Fault *fault);

void node_defaults_apply(const NodeDefaults *d, Node *node);
