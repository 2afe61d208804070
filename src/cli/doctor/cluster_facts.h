/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asks the API server for the webhook, which names the namespace of the installation. Then all
 * other questions at once, and then the kubelets and agents of the first nodes through it. Each
 * question has the time limit. */

#include "cli/doctor/facts.h"
#include "kube/client.h"

typedef struct ClusterQuery ClusterQuery;

/* config and ret_facts outlive the query. Returns 0 or -ENOMEM. */
int cluster_facts_new(sd_event *event, const KubeConfig *config, usec_t timeout, ClusterFacts *ret_facts,
                      ClusterQuery **ret);
ClusterQuery *cluster_facts_free(ClusterQuery *q);
bool cluster_facts_complete(const ClusterQuery *q);

/* Takes the Node objects of a list. Returns 0, LIST_ITEMS_E_MALFORMED with a fault, or -ENOMEM. */
int cluster_facts_take_nodes(ClusterFacts *c, Str list, Fault *fault);

/* The node agent's pod on that node, borrowed; NULL: there is none. */
const json_t *cluster_facts_agent(const ClusterFacts *c, const char *node);

DEFINE_CLEANUP(ClusterQuery *, cluster_facts_free)
