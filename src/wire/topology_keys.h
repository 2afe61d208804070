/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keys of ACK's topology-aware pods (docs/use/topology.md). */

/* Written by the Binding of a pod of whole cards, for programs: the pod's cards, and those of its
 * job. */
#define ANNOTATION_GPU_GROUP   "topology.kubernetes.io/gpu-group"
#define ANNOTATION_GPU_VISIBLE "topology.kubernetes.io/gpu-visible"

/* On a pod of whole cards, by its user: the job's name, and how many pods the job has. */
#define LABEL_TOPOLOGY_JOB      "gpu-topology"
#define LABEL_TOPOLOGY_REPLICAS "gpu-topology-replica"

/* Keys of users that have no effect here; an Event says so. */
#define ANNOTATION_CPUSET    "cpuset-scheduler"
#define ANNOTATION_NUMA_SPEC "scheduling.alibabacloud.com/numa-topology-spec"
