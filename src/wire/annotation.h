/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names and formats of CONTRACT sections 1, 3, 4 and 13: what is written into Kubernetes objects,
 * and nothing else decides it. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"

#define RESOURCE_GPU_MEM   "aliyun.com/gpu-mem"
#define RESOURCE_GPU_COUNT "aliyun.com/gpu-count"
#define RESOURCE_GPU_CORE  "aliyun.com/gpu-core.percentage"

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

/* System keys: only the scheduler's Binding and the node agent write them. A user's value is
 * dropped or emptied. */
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

#define ANNOTATION_CARDS           "aliquot.dev/cards"
#define ANNOTATION_UNIT            "aliquot.dev/gpu-mem-unit"
#define ANNOTATION_POLICY          "aliquot.dev/policy"
#define ANNOTATION_MAX_INST        "aliquot.dev/max-inst"
#define ANNOTATION_PRIO_RATIO      "aliquot.dev/prio-ratio"
#define ANNOTATION_MAX_PODS        "aliquot.dev/max-pods-per-card"
#define ANNOTATION_ALLOW_MIXED     "aliquot.dev/allow-mixed"
#define ANNOTATION_HELD_SLICES     "aliquot.dev/held-slices"
#define ANNOTATION_SIMULATED_CARDS "aliquot.dev/simulated-cards"

/* On a node, written by its agent: the mode and the memory unit in force, and, while a change waits
 * for the last slice to go, the change ("mode core_mem -> cgpu"). A node that carries the last one
 * takes no new slice. */
#define ANNOTATION_MODE_IN_FORCE  "aliquot.dev/mode-in-force"
#define ANNOTATION_UNIT_IN_FORCE  "aliquot.dev/gpu-mem-unit-in-force"
#define ANNOTATION_CHANGE_PENDING "aliquot.dev/change-pending"

/* On a node, written by its administrator: "true" places new slices while a change of mode waits;
 * "drain" lets a change of the unit stop new slices until it is in force, instead of being refused
 * while slices are held. */
#define ANNOTATION_PLACE_WHILE_CHANGING "aliquot.dev/place-while-changing"
#define ANNOTATION_UNIT_CHANGE          "aliquot.dev/gpu-mem-unit-change"

/* In a container's environment, set by its user. */
#define ENVIRONMENT_DISABLE         "CGPU_DISABLE"
#define ENVIRONMENT_WEIGHT          "ALIYUN_COM_GPU_SCHD_WEIGHT"
#define ENVIRONMENT_HIGH_PRIORITY   "ALIYUN_COM_GPU_HIGH_PRIO"
#define ENVIRONMENT_VISIBLE_DEVICES "NVIDIA_VISIBLE_DEVICES" /* the node agent's */

/* On a mirror pod, the API's picture of a static pod: the UID that the kubelet knows the pod by. */
#define ANNOTATION_MIRROR "kubernetes.io/config.mirror"

/* On a node: slices are held here, so the agent must stay whatever the mode label says. */
#define LABEL_HOLDS_SLICES "aliquot.dev/holds-slices"

enum { ANNOTATION_E_MALFORMED = 1 };

/* Larger indexes of cards and of containers are refused when read; arrays are sized by them. */
enum { CARD_INDEX_MAX = 255, CONTAINER_INDEX_MAX = 1023 };

/* What one container holds on one card: units of memory or percent of compute, as the annotation
 * says. */
typedef struct AllocationEntry {
        uint32_t container; /* index in spec.containers, or spec.initContainers for the init form */
        uint32_t card;
        uint32_t amount;
} AllocationEntry;

typedef struct Allocation {
        AllocationEntry *entries; /* by container, then card */
        size_t n_entries;
} Allocation;

/* `{"0":{"1":1},"1":{"1":7}}`. Entries live in the arena. An entry that stands twice, a card over
 * CARD_INDEX_MAX, a negative or fractional amount, or a string where a number belongs is refused
 * (digits in quotes are accepted: older schedulers wrote them). Amount 0 is dropped. Returns 0,
 * ANNOTATION_E_MALFORMED or -ENOMEM. */
int allocation_parse(Str text, Arena *arena, Allocation *ret, Fault *fault);

/* The same text back, in the entries' order, which must be by container, then card. */
void allocation_format(const AllocationEntry *entries, size_t n_entries, Buf *out);

/* One card as aliquot.dev/cards describes it. */
typedef struct CardInfo {
        uint32_t index;
        uint32_t units; /* DEV of CONTRACT section 2 */
        uint32_t mib;   /* memory of the card; 0 when not said */
        int32_t numa;   /* -1 when not said */
        bool healthy;   /* true when not said */
        Str uuid, model;
} CardInfo;

/* JSON list of CONTRACT section 13 into the arena, sorted by index. An index twice, and a card
 * without index or units, are refused. "mib" is optional. Format leaves out what is not said. */
int cards_parse(Str text, Arena *arena, CardInfo **ret, size_t *ret_n, Fault *fault);
void cards_format(const CardInfo *cards, size_t n, Buf *out);
