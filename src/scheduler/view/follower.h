/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reflectors that keep the view equal to the API server: nodes, pods, the ConfigMaps that fence
 * cards, PodDisruptionBudgets, and ResourcePolicies while the cluster serves them. */

#include "scheduler/view/view.h"

typedef struct Follower Follower;

/* Both outlive the follower. 0 or -ENOMEM. */
int follower_new(KubeClient *client, View *view, Follower **ret);
Follower *follower_free(Follower *f);

/* Lists nodes and pods anew, from the API server's quorum. A new leader calls it before it binds,
 * because its watch may lag behind what the former leader has bound. The view stays as it is until
 * the lists are complete. */
int follower_list_again(Follower *f);

/* Lists nodes and pods anew a moment later, because ResourcePolicies have changed: the view then
 * knows more of them. Binding goes on. A list that is under way ends first. The pause before the
 * next one is several times as long as a list, so that frequent changes cannot keep the scheduler
 * listing. */
void follower_list_soon(Follower *f);

/* False from follower_list_again() until its lists are complete. The pointer lives as long as the
 * follower. */
const bool *follower_fresh(const Follower *f);

/* When the API server last sent something of this kind, by the monotonic clock; 0: never. */
usec_t follower_heard(const Follower *f, ViewKind kind);

DEFINE_CLEANUP(Follower *, follower_free)
