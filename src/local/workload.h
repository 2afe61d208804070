/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods that a cluster's controllers make of a workload: Deployments, ReplicaSets, StatefulSets,
 * Jobs and DaemonSets. A CronJob has no pods before its time. All pods of a workload exist at once,
 * also of a StatefulSet, because the question is which of them can be placed.
 *
 * Names have Kubernetes' form (web-0, web-6b5c8f9d47-x2k4q, train-7hjkp). Their random letters are
 * derived from the workload, so the same manifest always gives the same pods. */

#include "base/fault.h"
#include "base/str.h"
#include "local/tree.h"

enum { WORKLOAD_E_INVALID = 1, WORKLOAD_MAX_PODS = 100000 };

/* Whether it is a workload of the above. Other groups have kinds of the same names, as Volcano's
 * Job. */
bool workload_is(const char *api_version, const char *kind);
const char *workload_version(const char *kind); /* its apiVersion; NULL: no workload */

/* Appends the workload's pods to the array `pods`. nodes: an array of Node objects; a DaemonSet has
 * one pod for each with labels and taints that permit it. The workload gets a metadata.uid when it
 * has none, because its pods point to it. The selector and the template's restartPolicy are judged
 * as the API server does. Returns 0, -ENOMEM, or WORKLOAD_E_INVALID with a fault that names field,
 * value and rule. */
int workload_expand(json_t *workload, const json_t *nodes, json_t *pods, Fault *fault);
