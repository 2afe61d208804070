/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* --why: what keeps one pending pod off each card. The answer is the scheduler's (GET /why), asked
 * through kubectl. What the pod itself tells is said without it: where it runs, that it asks for
 * nothing, or that no node can ever take it. */

#include "cli/inspect/cluster_read.h"

#define WHY_SCHEDULER "kube-system/aliquot-scheduler:12347"

/* pod: "NAMESPACE/NAME", or a name in the cluster's namespace_ (else "default"). scheduler:
 * "NAMESPACE/SERVICE:PORT", asked through the API server, or the URL of a scheduler. NULL is
 * WHY_SCHEDULER, or where that does not answer, the one in the namespace of the scheduler's pods.
 * Returns the exit status: 0 when the scheduler answered, or when the pod has its cards. */
int why_run(const Cluster *c, Str pod, const char *scheduler);
