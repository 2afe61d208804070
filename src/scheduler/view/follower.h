/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The reflectors that keep the view equal to the API server: nodes, pods, the ConfigMaps that fence
 * cards, PodDisruptionBudgets, and, while the cluster serves them, ResourcePolicies. */

#include "scheduler/view/view.h"

typedef struct Follower Follower;

/* client and view outlive the follower. Returns 0 or -ENOMEM. */
int follower_new(KubeClient *client, View *view, Follower **ret);
Follower *follower_free(Follower *f);

/* Lists nodes and pods anew, by a quorum read. A new leader calls it before it binds, because its
 * watch may lag behind the former leader's Bindings. The view stays as it is until the lists are
 * complete. Returns 0 or -ENOMEM. */
int follower_list_again(Follower *f);

/* Lists nodes and pods anew a moment later, because ResourcePolicies have changed and need them.
 * Binding goes on. A list that is under way ends first. The pause before the next list is several
 * times as long as a list takes, so that frequent changes cannot keep the scheduler listing. */
void follower_list_soon(Follower *f);

/* Whether the lists since the last follower_list_again() are complete. The pointer is valid as long
 * as the follower. */
const bool *follower_fresh(const Follower *f);

/* When the API server last sent something of this kind, by the monotonic clock; 0: never. */
usec_t follower_heard(const Follower *f, ViewKind kind);

DEFINE_CLEANUP(Follower *, follower_free)
