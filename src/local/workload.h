/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the controllers of a cluster make of a workload: its pods. Deployments, ReplicaSets,
 * StatefulSets, Jobs and DaemonSets; a CronJob has no pods before its time comes. All pods of a
 * workload are there at once, also those of a StatefulSet, whose controller would wait for each:
 * here the question is what finds a place.
 *
 * Names are those of Kubernetes (web-0, web-6b5c8f9d47-x2k4q, train-7hjkp), but the letters that
 * look random are made from the workload, so that the same manifest gives the same pods each
 * time. */

#include "base/fault.h"
#include "base/str.h"
#include "local/tree.h"

enum { WORKLOAD_E_INVALID = 1, WORKLOAD_MAX_PODS = 100000 };

bool workload_is(const char *kind);

/* Appends the workload's pods to the array `pods`. nodes: an array of Node objects, one DaemonSet
 * pod for each. The workload gets a metadata.uid when it has none, for its pods to point to.
 * Returns 0, -ENOMEM, or WORKLOAD_E_INVALID with a fault that names field, value and rule. */
int workload_expand(json_t *workload, const json_t *nodes, json_t *pods, Fault *fault);
