/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Nodes with simulated cards: what a node agent reports about its machine, made from one
 * annotation:
 *     aliquot.dev/simulated-cards: 4xTesla-V100-SXM2-16GB:16160MiB,2xA10:24GiB
 *
 * It sets card labels, aliquot.dev/cards, the memory unit, capacity and allocatable by the node's
 * mode, and a Ready condition if there is none. Every Node gets the labels of a kubelet where its
 * manifest has none: kubernetes.io/hostname, os and arch. */

#include "base/fault.h"
#include "local/tree.h"

enum { SIMULATED_NODE_E_MALFORMED = 1 };

/* Completes a Node manifest in place. Returns 0, -ENOMEM, or SIMULATED_NODE_E_MALFORMED with a
 * fault that names annotation, value and rule. */
int simulated_node_complete(json_t *node, Fault *fault);
