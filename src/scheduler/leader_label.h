/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which replica kube-scheduler reaches: the Service of the extender selects the pods with this
 * label, and the leader puts it on its own. When it stops leading it takes it off again. A former
 * leader may be frozen and keep it, so that the new one takes it off the others, too; every minute
 * both are looked at again. Nothing depends on it being exact: who is asked without being the
 * leader says so, and binds nothing. */

#include "kube/client.h"

#define LEADER_LABEL "aliquot.dev/leader"

typedef struct LeaderLabel LeaderLabel;

/* The pod that we run in. It begins by taking the label off: an earlier process in the same pod may have left it. 0 or
 * -ENOMEM. */
int leader_label_new(KubeClient *c, const char *namespace_, const char *pod, LeaderLabel **ret);
LeaderLabel *leader_label_free(LeaderLabel *l); /* before its client; the label stays as it is */

void leader_label_set(LeaderLabel *l, bool leading);

DEFINE_CLEANUP(LeaderLabel *, leader_label_free)
