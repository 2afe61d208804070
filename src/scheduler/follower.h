/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Four reflectors that keep the view equal to the API server: nodes, pods, the ConfigMaps that
 * fence cards, and PodDisruptionBudgets. */

#include "scheduler/view.h"

typedef struct Follower Follower;

/* Both outlive the follower. 0 or -ENOMEM. */
int follower_new(KubeClient *client, View *view, Follower **ret);
Follower *follower_free(Follower *f);

/* Lists nodes and pods anew, from the API server's quorum. A new leader calls it before it binds,
 * because its watch may lag behind what the former leader has bound. The view stays as it is until
 * the lists are complete. */
int follower_list_again(Follower *f);

/* False from follower_list_again() until its lists are complete. The pointer lives as long as the
 * follower. */
const bool *follower_fresh(const Follower *f);

DEFINE_CLEANUP(Follower *, follower_free)
