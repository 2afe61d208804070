/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of a Node that sharing a GPU depends on. Like every object, a view (wire/object.h). */

#include "wire/object.h"

typedef struct NodeAnnotations {
        Str cards, unit, policy, max_inst, prio_ratio, max_pods, allow_mixed, held_slices, simulated_cards;
        Str mode_in_force, unit_in_force, change_pending; /* written by the node's agent */
        /* Written by the agent and by the leading scheduler. */
        Str growth;
        Str place_while_changing, unit_change, cordon_cards, memory_isolation;
} NodeAnnotations;

/* Type of a node's condition that the leading scheduler writes: a ConfigMap that fences the node's
 * cards has an entry that is not understood. */
#define CONDITION_FENCES "GPUFenceMisconfigured"
/* Type of a node's condition that its agent writes. True: the driver is to limit memory, too, and
 * cannot. False with this reason: it does. */
#define CONDITION_MEMORY_LIMITS  "GPUShareMemoryLimitsUnavailable"
#define CONDITION_REASON_LIMITED "LimitedByDriver"

/* On a node: "false" keeps NVIDIA's device plugin off it. The GPU Operator's DaemonSet selects
 * nodes with "true", and the operator adds that where the label is absent (addGPUStateLabels in
 * controllers/state_manager.go of NVIDIA/gpu-operator). */
#define LABEL_NVIDIA_PLUGIN "nvidia.com/gpu.deploy.device-plugin"

typedef struct Node {
        ObjectMeta meta;
        NodeAnnotations annotations;
        /* LABEL_SCHEDULE, LABEL_PLACEMENT. */
        Str mode, placement;
        Str holds_slices;                    /* LABEL_HOLDS_SLICES */
        Str nvidia_plugin;                   /* LABEL_NVIDIA_PLUGIN */
        Str card_name, card_mem, card_count; /* LABEL_CARD_NAME, LABEL_CARD_MEM, LABEL_CARD_COUNT */
        /* Quantities; empty when absent. */
        Str allocatable_mem, allocatable_count, allocatable_core, allocatable_whole, allocatable_cpu;
        /* status.addresses, the first InternalIP. */
        Str internal_ip;
        /* status.conditions, CONDITION_FENCES; empty when absent. */
        Str fences_status, fences_message;
        /* status.conditions, CONDITION_MEMORY_LIMITS; empty when absent. */
        Str limits_status, limits_reason, limits_message;
} Node;

/* Returns what pod_decode() returns. */
int node_decode(Str json, Arena *arena, Node *ret, Fault *fault);
