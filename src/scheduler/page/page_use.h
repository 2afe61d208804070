/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a node's agent measures, for the page: the memory that processes hold, the time of a card
 * that they use, and why a card is fenced. It stands in no Kubernetes object, so the agent is asked
 * for its metrics, and only when a viewer has the node open. The agent's pod is looked up by its
 * labels and its node, and asked at its address, without credentials.
 *
 * Bounds: PAGE_USE_NODES nodes at a time, each at most every PAGE_USE_EVERY however many viewers
 * ask, PAGE_USE_TIMEOUT for each of the two calls, PAGE_USE_BYTES of metrics, and few lines of
 * them. */

#include <systemd/sd-event.h>

#include "kube/client.h"
#include "net/http/http_server.h"

#define PAGE_USE_EVERY   (2 * USEC_PER_SEC)
#define PAGE_USE_TIMEOUT (2 * USEC_PER_SEC)

enum {
        PAGE_USE_NODES = 16,
        PAGE_USE_BYTES = 4 << 20,
        PAGE_USE_PORT = 9445, /* of the DaemonSet (deploy/helm/aliquot/templates/node.yaml) */
};

typedef struct PageUse PageUse;

/* client and namespace_, which the agents' pods are in, outlive it. 0 or -ENOMEM. */
int page_use_new(KubeClient *client, const char *namespace_, PageUse **ret);
PageUse *page_use_free(PageUse *u); /* after the server that has its exchanges */

/* Answers with those lines of the agent's metrics that the page shows (prefixes in page_use.c).
 * Above them stands "# at SECONDS", when they came, so that a reader can make rates of counters.
 * The seconds count from any beginning. Where there are no lines, the answer is "unknown: " and
 * why: the node has no agent, it does not answer, or too many nodes are asked at once. */
void page_use_answer(PageUse *u, HttpExchange *x, Str node);
