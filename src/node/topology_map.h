/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ConfigMap of a node with the links between its cards, in the form that `kubectl arena top
 * node` reads (kubeflow/arena, pkg/topnode/gputopology.go). It is kube-system/aliquot-topology-NODE
 * and belongs to the Node object, so it is deleted with it. */

#include "gpu/cards/card_list.h"
#include "kube/client.h"

typedef struct TopologyMap TopologyMap;

int topology_map_new(KubeClient *client, const char *node, TopologyMap **ret); /* 0 or -ENOMEM */
TopologyMap *topology_map_free(TopologyMap *m);                                /* before its client */

/* Writes the ConfigMap, when it differs from what was written last, and repeats a write that
 * fails. uid: of the Node object. Returns 0 or -ENOMEM. */
int topology_map_set(TopologyMap *m, Str uid, const CardList *cards);

/* Appends the ConfigMap as JSON. The data of a pair are those of `nvidia-smi topo -m`, and its
 * nominal GB/s one way. */
void topology_map_write(Buf *out, const char *node, Str uid, const CardList *cards);

DEFINE_CLEANUP(TopologyMap *, topology_map_free)
