/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the node says of compute, on its way into the slice pages. Pages of running containers are
 * said anew in place whenever the node says something else, or a container with a weight comes or
 * goes. */

#include "share/compute.h"
#include "slicedir/slice_policy.h"

typedef struct NodeCompute {
        ComputeTerms terms;
        ShareMode mode; /* that pages were last said for */
        bool known; /* the node object has come: until then running containers keep what their pages say */
        bool stale; /* pages may say something else */
} NodeCompute;

void node_compute_init(NodeCompute *c, uint32_t policy); /* the chart's, 0..5 */

/* The node's annotations as they are now. 0, or COMPUTE_E_TERMS with a fault, and the values before
 * stay. */
int node_compute_update(NodeCompute *c, const NodeAnnotations *annotations, uint32_t policy, Fault *fault);

/* The node's own part of a page that is to be made; what others on the card ask is put right by
 * node_compute_publish(). */
void node_compute_fill(const NodeCompute *c, ShareMode mode, SliceSpec *spec);

/* Says it in all of the agent's pages, where something may have changed; what cannot be written is
 * logged, and tried again with the next change. */
void node_compute_publish(NodeCompute *c, Slicedir *board, ShareMode mode);
