/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads what processes hold of each card, which is in no Kubernetes object. The node agents have it
 * among their metrics, which the API server passes on from their pods. */

#include "cli/inspect/cluster_read.h"

/* Asks the agents of the report's nodes, some at once. Agents that do not answer are counted in
 * one line on standard error. Returns 0, or an exit status as cluster_read(), with a message
 * printed. */
int usage_read(const Cluster *c, Inspect *inspect);
