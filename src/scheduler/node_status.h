/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The condition GPUFenceMisconfigured (CONDITION_FENCES) of every node, and an Event each time that
 * its message changes. It is True while a ConfigMap that fences cards of the node is not
 * understood, and False again when it is; a node where nothing was ever wrong does not get it. What
 * the node's object says is compared with what should be there, so that a restarted scheduler or a
 * new leader writes only what differs. Only the leader may write. */

#include "kube/api.h"
#include "wire/node.h"

typedef struct NodeStatus NodeStatus;

typedef struct NodeStatusOptions {
        KubeClient *client;
        KubeEventRecorder *recorder; /* both outlive it */
        bool (*may_write)(
                void *userdata); /* asked before each write: this replica leads, and has seen all ConfigMaps */
        void *userdata;
} NodeStatusOptions;

/* 0 or -ENOMEM. */
int node_status_new(const NodeStatusOptions *options, NodeStatus **ret);
NodeStatus *node_status_free(NodeStatus *s); /* before its client and recorder */

/* The node's object as it is now, and its end. */
void node_status_node(NodeStatus *s, const Node *node);
void node_status_gone(NodeStatus *s, Str name);

/* What is wrong with the ConfigMaps of this node; "": nothing. The node's object may come later. */
void node_status_fences(NodeStatus *s, Str node, const char *text);

/* may_write() has become true: everything that differs is written. */
void node_status_settle(NodeStatus *s);

DEFINE_CLEANUP(NodeStatus *, node_status_free)
