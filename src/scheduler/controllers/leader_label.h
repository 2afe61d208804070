/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The label that tells kube-scheduler which replica leads. The Service of the extender selects the
 * pods with this label. The leader puts it on its own pod, and takes it off when it stops leading.
 * A former leader may be frozen and keep it, so that the new one also takes it off all other pods;
 * both are checked every minute.
 *
 * Nothing depends on the label being exact: a replica that is asked and does not lead says so, and
 * binds nothing. */

#include "kube/client.h"

#define LEADER_LABEL "aliquot.dev/leader"

typedef struct LeaderLabel LeaderLabel;

/* pod: the pod of this process. The label is taken off it first, because an earlier process in the
 * same pod may have left it there. 0 or -ENOMEM. */
int leader_label_new(KubeClient *c, const char *namespace_, const char *pod, LeaderLabel **ret);
LeaderLabel *leader_label_free(LeaderLabel *l); /* before its client; the label stays as it is */

void leader_label_set(LeaderLabel *l, bool leading);

DEFINE_CLEANUP(LeaderLabel *, leader_label_free)
