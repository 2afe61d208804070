/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node's compute settings, which go into the slice pages. Pages of running containers are
 * rewritten in place whenever the settings change, or a container with a weight comes or goes. */

#include "share/compute.h"
#include "slicedir/slice_policy.h"

typedef struct NodeCompute {
        CardCompute configured; /* the node's settings, before its mode is applied */
        ShareMode mode;         /* the mode for which the pages were last written */
        bool known;             /* the node object has come; until then running containers keep their pages */
        /* the pages may differ from the settings, and are to be written again */
        bool stale;
} NodeCompute;

void node_compute_init(NodeCompute *c, ComputePolicy policy); /* policy: the chart's default */

/* Takes the settings from the node's annotations. 0, or COMPUTE_E_NODE with a fault that names the
 * malformed ones, whose earlier values stay. */
int node_compute_update(NodeCompute *c, const NodeAnnotations *annotations, ComputePolicy policy,
                        Fault *fault);

/* Fills the node's part of a page that is to be made. node_compute_publish() then corrects it by
 * what the other containers of the card ask. */
void node_compute_fill(const NodeCompute *c, ShareMode mode, SliceSpec *spec);

/* Writes the settings into all of the agent's pages, where something may have changed. A page that
 * cannot be written is logged, and tried again with the next change. */
void node_compute_publish(NodeCompute *c, Slicedir *slicedir, ShareMode mode);
