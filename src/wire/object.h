/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of Pod and Node that sharing a GPU depends on, as views of the JSON text they were
 * decoded from: every Str points into that text or into the arena, and who keeps an object copies
 * what it keeps. Fields that this page does not know are passed over; fields of the wrong type are
 * refused with their path. */

#include "wire/annotation.h"
#include "wire/gate_cover.h"

enum { OBJECT_E_MALFORMED = 1 };

typedef enum ContainerKind {
        CONTAINER_MAIN,    /* spec.containers */
        CONTAINER_INIT,    /* spec.initContainers: one after another, before the others */
        CONTAINER_SIDECAR, /* spec.initContainers with restartPolicy Always: starts in order and stays */
} ContainerKind;

/* One resource of a container's limits. present with text: what was asked, as it was written (a
 * Quantity). */
typedef struct ResourceAsk {
        bool present;
        Str text;
} ResourceAsk;

/* One variable of a container, as far as its specification tells. */
typedef struct EnvironmentText {
        Str text;
        bool elsewhere; /* valueFrom: what it is, only the kubelet knows */
} EnvironmentText;

typedef struct PodContainer {
        Str name;
        ContainerKind kind;
        uint32_t index; /* in its own list */
        ResourceAsk gpu_mem, gpu_core, gpu_count;
        bool other_devices; /* its limits name an extended resource that is not one of these */
        bool not_isolated;  /* its environment says CGPU_DISABLE */
        EnvironmentText weight, high_priority; /* ENVIRONMENT_WEIGHT, ENVIRONMENT_HIGH_PRIORITY */
        bool sets_visible_devices;             /* its environment has ENVIRONMENT_VISIBLE_DEVICES */
        Str visible_devices;                   /* with this value */
        GateCover cover; /* the first of its volumes and files that the kubelet mounts over the gate */
} PodContainer;

/* A container that was made, by its status. */
typedef struct ContainerId {
        Str name, id; /* as it stands there: "containerd://0123..." */
} ContainerId;

typedef struct PodAnnotations {
        Str allocation, assigned, assume_time, core, init_allocation, resize_status; /* current form */
        Str old_idx, old_dev, old_pod, old_assigned, old_assume_time;                /* older form */
        Str mirror; /* of a static pod: its UID on the node */
} PodAnnotations;

typedef struct ObjectMeta {
        Str name, namespace_, uid, resource_version, creation_timestamp;
        bool terminating;   /* deletionTimestamp is set */
        Str controller_uid; /* of the ownerReference with controller: true */
} ObjectMeta;

typedef struct Pod {
        ObjectMeta meta;
        PodAnnotations annotations;
        Str gpu_count_label; /* LABEL_POD_COUNT */
        Str node_name, scheduler_name, phase;
        PodContainer *containers; /* init containers and sidecars in order, then the main ones */
        size_t n_containers;
        bool containers_ended; /* no status says running: a container that waits has no process. (In a pod
                                  that failed in an init container the others wait for ever.) */
        ContainerId *ids;      /* of all lists of statuses, the last start of each */
        size_t n_ids;
} Pod;

typedef struct NodeAnnotations {
        Str cards, unit, policy, max_inst, prio_ratio, max_pods, allow_mixed, held_slices, simulated_cards;
        Str mode_in_force, unit_in_force, change_pending; /* the agent's */
        Str place_while_changing, unit_change;
} NodeAnnotations;

/* Type of a node's condition, written by the leading scheduler: a ConfigMap that fences cards is
 * not understood. */
#define CONDITION_FENCES "GPUFenceMisconfigured"

typedef struct Node {
        ObjectMeta meta;
        NodeAnnotations annotations;
        Str mode, placement;                                      /* LABEL_SCHEDULE, LABEL_PLACEMENT */
        Str holds_slices;                                         /* LABEL_HOLDS_SLICES */
        Str card_name, card_mem, card_count;                      /* card labels */
        Str allocatable_mem, allocatable_count, allocatable_core; /* Quantities; empty when absent */
        Str internal_ip;                                          /* status.addresses, the first InternalIP */
        Str fences_status, fences_message; /* status.conditions, CONDITION_FENCES; empty when absent */
} Node;

/* Decode one object of the given kind. Its `kind` and `apiVersion` are not looked at. Returns 0,
 * OBJECT_E_MALFORMED (fault: path and reason; *ret untouched) or -ENOMEM. */
int pod_decode(Str json, Arena *arena, Pod *ret, Fault *fault);
int node_decode(Str json, Arena *arena, Node *ret, Fault *fault);

/* The top-level `kind` of any object, empty when it has none. The text is read up to there only,
 * because in a mixed list the decoder for that kind reads it again, or nobody does. */
int object_kind(Str json, Arena *arena, Str *ret, Fault *fault);

/* Succeeded or Failed: such a pod holds nothing once its containers have ended. */
bool pod_is_terminal(const Pod *pod);

/* Bit i: the i-th key of POD_SYSTEM_KEYS has a value on this pod. */
uint32_t pod_system_keys(const Pod *pod);
extern const Str pod_system_key_names[];
enum { POD_SYSTEM_KEYS_COUNT = 11 };
