/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The startup taint of a node pool. A node of the pool begins with it, so that no pod is placed
 * there before both resources are published. The agent takes it off then. The cluster autoscaler
 * takes a node with a taint of this prefix for one that is not ready yet
 * (cluster-autoscaler/FAQ.md, "--startup-taint"). */

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"

#define STARTUP_TAINT "startup-taint.cluster-autoscaler.kubernetes.io/aliquot"

/* Reads the text of a Node. *ret_found: the taint is there, with whatever value and effect; *others
 * gets the JSON list of the other taints then. Returns what conditions_read() does. */
int startup_taint_read(Str node, Arena *arena, bool *ret_found, Buf *others, Fault *fault);
