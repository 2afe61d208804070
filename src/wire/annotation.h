/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names that are written into Kubernetes objects and read there: resources, labels, annotations
 * and environment variables (docs/reference/reference.md). No other file spells them. */

#define RESOURCE_GPU_MEM   "aliyun.com/gpu-mem"
#define RESOURCE_GPU_COUNT "aliyun.com/gpu-count"
#define RESOURCE_GPU_CORE  "aliyun.com/gpu-core.percentage"
#define RESOURCE_GPU       "aliyun.com/gpu" /* whole cards, in mode topology */

#define RESOURCE_BEGINNING "aliyun.com/gpu" /* the prefix that all of these names have */

#define LABEL_SCHEDULE   "ack.node.gpu.schedule"
#define LABEL_PLACEMENT  "ack.node.gpu.placement"
#define LABEL_CARD_NAME  "aliyun.accelerator/nvidia_name"
#define LABEL_CARD_MEM   "aliyun.accelerator/nvidia_mem"
#define LABEL_CARD_COUNT "aliyun.accelerator/nvidia_count"
#define LABEL_POD_COUNT  "aliyun.com/gpu-count"

#define ANNOTATION_ALLOCATION      "scheduler.framework.gpushare.allocation"
#define ANNOTATION_ASSIGNED        "scheduler.framework.gpushare.assigned"
#define ANNOTATION_ASSUME_TIME     "scheduler.framework.gpushare.assume-time"
#define ANNOTATION_CORE            "gpushare.alibabacloud.com/core-percentage"
#define ANNOTATION_INIT_ALLOCATION "aliquot.dev/init-allocation"
#define ANNOTATION_OLD_IDX         "ALIYUN_COM_GPU_MEM_IDX"
#define ANNOTATION_OLD_DEV         "ALIYUN_COM_GPU_MEM_DEV"
#define ANNOTATION_OLD_POD         "ALIYUN_COM_GPU_MEM_POD"
#define ANNOTATION_OLD_ASSIGNED    "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define ANNOTATION_OLD_ASSUME_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
#define ANNOTATION_RESIZE_STATUS   "aliquot.dev/resize-status"

/* On a pod that a ResourcePolicy placed: the policy's name, and the deletion cost that was written
 * with it (scheduler/policy/policy_mark.h). */
#define ANNOTATION_RESOURCE_POLICY "aliquot.dev/resource-policy"
#define ANNOTATION_DELETION_COST   "controller.kubernetes.io/pod-deletion-cost"

/* System keys. Only the Binding of the scheduler and the node agent write them; the value of
 * another user is dropped or emptied. */
#define POD_SYSTEM_KEYS(X)                                                                                   \
        X(allocation, ANNOTATION_ALLOCATION)                                                                 \
        X(assigned, ANNOTATION_ASSIGNED)                                                                     \
        X(assume_time, ANNOTATION_ASSUME_TIME)                                                               \
        X(core, ANNOTATION_CORE)                                                                             \
        X(init_allocation, ANNOTATION_INIT_ALLOCATION)                                                       \
        X(resize_status, ANNOTATION_RESIZE_STATUS)                                                           \
        X(old_idx, ANNOTATION_OLD_IDX)                                                                       \
        X(old_dev, ANNOTATION_OLD_DEV)                                                                       \
        X(old_pod, ANNOTATION_OLD_POD)                                                                       \
        X(old_assigned, ANNOTATION_OLD_ASSIGNED)                                                             \
        X(old_assume_time, ANNOTATION_OLD_ASSUME_TIME)

/* Keys of users that say which cards a pod may use: ours, those of HAMi and of vgpu-manager
 * (share/card_choice.h has the rules). */
#define POD_CARD_KEYS(X)                                                                                     \
        X(gpu_type, "aliquot.dev/gpu-type", MODEL, EITHER)                                                   \
        X(gpu_uuid, "aliquot.dev/gpu-uuid", UUID, EITHER)                                                    \
        X(use_gputype, "nvidia.com/use-gputype", MODEL, WANTED)                                              \
        X(nouse_gputype, "nvidia.com/nouse-gputype", MODEL, EXCLUDED)                                        \
        X(use_gpuuuid, "nvidia.com/use-gpuuuid", UUID, WANTED)                                               \
        X(nouse_gpuuuid, "nvidia.com/nouse-gpuuuid", UUID, EXCLUDED)                                         \
        X(include_gpu_type, "nvidia.com/include-gpu-type", MODEL, WANTED)                                    \
        X(exclude_gpu_type, "nvidia.com/exclude-gpu-type", MODEL, EXCLUDED)                                  \
        X(include_gpu_uuid, "nvidia.com/include-gpu-uuid", UUID, WANTED)                                     \
        X(exclude_gpu_uuid, "nvidia.com/exclude-gpu-uuid", UUID, EXCLUDED)

/* Keys of users that make pods a gang (docs/use/gangs.md): ACK's, and Koordinator's. */
#define LABEL_GANG           "pod-group.scheduling.sigs.k8s.io"
#define LABEL_GANG_NAME      LABEL_GANG "/name"
#define LABEL_GANG_MIN       LABEL_GANG "/min-available"
#define ANNOTATION_GANG_NAME "gang.scheduling.koordinator.sh/name"
#define ANNOTATION_GANG_MIN  "gang.scheduling.koordinator.sh/min-available"

/* The scheduling gate of a gang's members; kube-scheduler retries a pod when its kick changes. */
#define GATE_GANG                  "aliquot.dev/gang"
#define ANNOTATION_KICK            "aliquot.dev/kick"
#define ANNOTATION_CARDS           "aliquot.dev/cards"
#define ANNOTATION_UNIT            "aliquot.dev/gpu-mem-unit"
#define ANNOTATION_POLICY          "aliquot.dev/policy"
#define ANNOTATION_MAX_INST        "aliquot.dev/max-inst"
#define ANNOTATION_PRIO_RATIO      "aliquot.dev/prio-ratio"
#define ANNOTATION_MAX_PODS        "aliquot.dev/max-pods-per-card"
#define ANNOTATION_ALLOW_MIXED     "aliquot.dev/allow-mixed"
#define ANNOTATION_HELD_SLICES     "aliquot.dev/held-slices"
#define ANNOTATION_SIMULATED_CARDS "aliquot.dev/simulated-cards"

/* On a node, written by its agent: the mode and the memory unit in force. While a change waits for
 * the last slice to go, also the change ("mode core_mem -> cgpu"); a node with it takes no new
 * slice. */
#define ANNOTATION_MODE_IN_FORCE  "aliquot.dev/mode-in-force"
#define ANNOTATION_UNIT_IN_FORCE  "aliquot.dev/gpu-mem-unit-in-force"
#define ANNOTATION_CHANGE_PENDING "aliquot.dev/change-pending"

/* On a node, by its administrator (docs/reference/reference.md). */
#define ANNOTATION_CORDON_CARDS         "aliquot.dev/cordon-cards"
#define ANNOTATION_PLACE_WHILE_CHANGING "aliquot.dev/place-while-changing"
#define ANNOTATION_UNIT_CHANGE          "aliquot.dev/gpu-mem-unit-change"
#define ANNOTATION_MEMORY_ISOLATION     "aliquot.dev/memory-isolation"

/* In a container's environment, set by its user. */
#define ENVIRONMENT_DISABLE       "CGPU_DISABLE"
#define ENVIRONMENT_WEIGHT        "ALIYUN_COM_GPU_SCHD_WEIGHT"
#define ENVIRONMENT_HIGH_PRIORITY "ALIYUN_COM_GPU_HIGH_PRIO"

/* In a container's environment, set by the node agent, `aliquot local` and `aliquot run`. */
#define ENVIRONMENT_MEM_CONTAINER   "ALIYUN_COM_GPU_MEM_CONTAINER"
#define ENVIRONMENT_MEM_DEV         "ALIYUN_COM_GPU_MEM_DEV"
#define ENVIRONMENT_MEM_POD         "ALIYUN_COM_GPU_MEM_POD"
#define ENVIRONMENT_MEM_IDX         "ALIYUN_COM_GPU_MEM_IDX"
#define ENVIRONMENT_MEM_UNIT        "ALIYUN_COM_GPU_MEM_UNIT"
#define ENVIRONMENT_VISIBLE_DEVICES "NVIDIA_VISIBLE_DEVICES"

/* On a mirror pod, the API object of a static pod: the UID by which the kubelet knows the pod. */
#define ANNOTATION_MIRROR "kubernetes.io/config.mirror"

/* On a node: it still holds slices, so that its agent must stay, whatever the mode label says. */
#define LABEL_HOLDS_SLICES "aliquot.dev/holds-slices"

/* Larger card and container indexes are refused when read: arrays are sized by these. */
enum { CARD_INDEX_MAX = 255, CONTAINER_INDEX_MAX = 1023 };
