/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a node's agent measures, for the page: memory that processes hold, card time that they use,
 * and why a card is fenced. No Kubernetes object has it. So the agent's metrics are fetched, and
 * only while a viewer has the node open. The agent's pod is found by its labels and its node, and
 * called at its address, without credentials.
 *
 * Bounds: PAGE_USE_NODES nodes at a time, each once per PAGE_USE_EVERY however many viewers ask,
 * PAGE_USE_TIMEOUT for each of the two calls, PAGE_USE_BYTES of metrics, and few lines of them. */

#include <systemd/sd-event.h>

#include "kube/client.h"
#include "net/http/http_server.h"

#define PAGE_USE_EVERY   (2 * USEC_PER_SEC)
#define PAGE_USE_TIMEOUT (2 * USEC_PER_SEC)

enum {
        PAGE_USE_NODES = 16,
        PAGE_USE_BYTES = 4 << 20,
        /* the agent's port in the DaemonSet (deploy/helm/aliquot/templates/node.yaml) */
        PAGE_USE_PORT = 9445,
};

typedef struct PageUse PageUse;

/* namespace_: where the agents' pods run. client and namespace_ outlive *ret. Returns 0 or
 * -ENOMEM. */
int page_use_new(KubeClient *client, const char *namespace_, PageUse **ret);
PageUse *page_use_free(PageUse *u); /* after the server: its exchanges wait for answers */

/* Answers the exchange with those lines of the agent's metrics that the page shows (prefixes in
 * page_use.c), now or later. Above them is "# at SECONDS", the monotonic time of the metrics, for
 * rates of counters. Without metrics the answer is "unknown: " and the reason: the node has no
 * agent, the agent does not answer, or too many nodes are asked. */
void page_use_answer(PageUse *u, HttpExchange *x, Str node);
