/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes the condition GPUFenceMisconfigured (CONDITION_FENCES) of nodes, and an Event each time
 * its message changes. The condition is True while a ConfigMap that fences cards of the node cannot
 * be understood, and then False. A node without such a ConfigMap so far has no condition.
 *
 * The node's object is compared with the wanted condition, so that a restarted scheduler or a new
 * leader writes only what differs. Only the leader may write, once it has seen all ConfigMaps:
 * before, a condition that is True would be set to False by mistake. */

#include "scheduler/question/scheduler_context.h"
#include "wire/node.h"

typedef struct NodeStatus NodeStatus;

int node_status_new(SchedulerContext *context, NodeStatus **ret); /* 0 or -ENOMEM */
NodeStatus *node_status_free(NodeStatus *s);                      /* before its client and recorder */

/* The watch: the node's object came or changed; the node is gone. */
void node_status_node(NodeStatus *s, const Node *node);
void node_status_gone(NodeStatus *s, Str name);

/* What is wrong with the ConfigMaps of this node; "": nothing. The node's object may come later. */
void node_status_fences(NodeStatus *s, Str node, const char *text);

/* This replica leads now, or all ConfigMaps are listed: everything that differs is written. */
void node_status_write_all(NodeStatus *s);

DEFINE_CLEANUP(NodeStatus *, node_status_free)
