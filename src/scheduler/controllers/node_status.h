/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The condition GPUFenceMisconfigured (CONDITION_FENCES) of every node, and an Event each time its
 * message changes. The condition is True while a ConfigMap that fences cards of the node is not
 * understood, and False when all are again. A node where nothing was ever wrong does not get it.
 *
 * The node's object is compared with the wanted condition, so that a restarted scheduler or a new
 * leader writes only what differs. Only the leader may write. */

#include "kube/api.h"
#include "wire/node.h"

typedef struct NodeStatus NodeStatus;

typedef struct NodeStatusOptions {
        KubeClient *client;
        KubeEventRecorder *recorder; /* both outlive it */

        /* Asked before each write: whether this replica leads, and has seen all ConfigMaps. */
        bool (*may_write)(void *userdata);
        void *userdata;
} NodeStatusOptions;

/* 0 or -ENOMEM. */
int node_status_new(const NodeStatusOptions *options, NodeStatus **ret);
NodeStatus *node_status_free(NodeStatus *s); /* before its client and recorder */

/* The node's object came or changed, and is gone. */
void node_status_node(NodeStatus *s, const Node *node);
void node_status_gone(NodeStatus *s, Str name);

/* The fault of the ConfigMaps of this node; "": none. The node's object may come later. */
void node_status_fences(NodeStatus *s, Str node, const char *text);

/* may_write() has become true: everything that differs is written. */
void node_status_write_all(NodeStatus *s);

DEFINE_CLEANUP(NodeStatus *, node_status_free)
