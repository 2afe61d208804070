/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Settings of an installation that hold on every node whose annotations do not say them. They are put into the decoded node where its
 * annotation is absent, so that whatever reads the annotation obeys them. */

#include "wire/object.h"

typedef enum NodeSetting {
        NODE_MAX_INST,             /* ANNOTATION_MAX_INST */
        NODE_PRIO_RATIO,           /* ANNOTATION_PRIO_RATIO */
        NODE_MAX_PODS,             /* ANNOTATION_MAX_PODS */
        NODE_ALLOW_MIXED,          /* ANNOTATION_ALLOW_MIXED */
        NODE_PLACE_WHILE_CHANGING, /* ANNOTATION_PLACE_WHILE_CHANGING */
        NODE_SETTINGS_,
} NodeSetting;

typedef struct NodeDefaults {
        const char *values[NODE_SETTINGS_]; /* NULL: not said. The caller's, who keeps them */
} NodeDefaults;

enum { NODE_DEFAULTS_E_VALUE = 1 };

/* text: kept, not copied. 0, or NODE_DEFAULTS_E_VALUE with a fault that names option, value and rule. */
int node_defaults_set(NodeDefaults *d, NodeSetting setting, const char *text, Fault *fault);

void node_defaults_apply(const NodeDefaults *d, Node *node);
