/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keys of ACK's topology-aware pods (docs/use/topology.md). */

/* In the Binding of a pod of whole cards, for programs: its cards, and those of its job. */
#define ANNOTATION_GPU_GROUP   "topology.kubernetes.io/gpu-group"
#define ANNOTATION_GPU_VISIBLE "topology.kubernetes.io/gpu-visible"

/* Of a pod of whole cards: its job, and how many pods that has. */
#define LABEL_TOPOLOGY_JOB      "gpu-topology"
#define LABEL_TOPOLOGY_REPLICAS "gpu-topology-replica"

/* Of users, without an effect here: an Event says so. */
#define ANNOTATION_CPUSET    "cpuset-scheduler"
#define ANNOTATION_NUMA_SPEC "scheduling.alibabacloud.com/numa-topology-spec"
