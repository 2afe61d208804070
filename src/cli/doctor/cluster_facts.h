/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asks the API server for the webhook's configuration, which names the namespace of the
 * installation. Then asks all other questions at once, and then the kubelets and agents of the
 * first nodes through the API server. The time limit is for each question. */

#include "cli/doctor/facts.h"
#include "kube/client.h"

typedef struct ClusterQuery ClusterQuery;

/* Starts the query. config and ret_facts must outlive it. Returns 0 or negative errno. */
int cluster_facts_new(sd_event *event, const KubeConfig *config, usec_t timeout, ClusterFacts *ret_facts,
                      ClusterQuery **ret);
ClusterQuery *cluster_facts_free(ClusterQuery *q);
bool cluster_facts_complete(const ClusterQuery *q);

/* Takes the Node objects of a list. Returns 0, LIST_ITEMS_E_MALFORMED with a fault, or -ENOMEM. */
int cluster_facts_take_nodes(ClusterFacts *c, Str list, Fault *fault);

/* Returns the node agent's pod on that node, borrowed; NULL: there is none. */
const json_t *cluster_facts_agent(const ClusterFacts *c, const char *node);

DEFINE_CLEANUP(ClusterQuery *, cluster_facts_free)
