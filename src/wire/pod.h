/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of a Pod that sharing a GPU depends on. Like every object, a view (wire/object.h). */

#include "wire/annotation.h"
#include "wire/gate_cover.h"
#include "wire/object.h"

typedef enum ContainerKind {
        CONTAINER_MAIN, /* spec.containers */
        CONTAINER_INIT, /* spec.initContainers: one after another, before the others */
        /* spec.initContainers with restartPolicy Always: starts in order and stays. */
        CONTAINER_SIDECAR,
} ContainerKind;

/* One resource of a container's limits. text: the Quantity as the limits have it. */
typedef struct ResourceAsk {
        bool present;
        Str text;
} ResourceAsk;

/* One variable of a container, as far as its specification has the value. */
typedef struct EnvironmentText {
        Str text;
        bool elsewhere; /* valueFrom: only the kubelet knows the value */
} EnvironmentText;

typedef struct PodContainer {
        Str name;
        ContainerKind kind;
        uint32_t index; /* index in spec.containers or in spec.initContainers */
        ResourceAsk gpu_mem, gpu_core, gpu_count, gpu;
        bool other_devices; /* its limits name an extended resource that has no member here */
        Str other_limit;    /* the last of those names that starts with RESOURCE_BEGINNING; empty: none */
        Str foreign_limit;  /* the last of its limits that is a share of another system; empty: none */
        bool privileged;
        Str cpu;           /* its request of cpu, a Quantity; empty when absent */
        bool not_isolated; /* its environment says CGPU_DISABLE */
        /* ENVIRONMENT_DISABLE, ENVIRONMENT_WEIGHT, ENVIRONMENT_HIGH_PRIORITY */
        EnvironmentText disable, weight, high_priority;
        bool sets_visible_devices; /* its environment has ENVIRONMENT_VISIBLE_DEVICES */
        Str visible_devices;       /* the value of that variable */
        /* The last variable of its environment that limits memory for NVIDIA's hook. */
        Str memory_variable;
        Str agents_variable; /* the last one that the node agent sets itself */
        /* The first of its mounts, devices and message file that the kubelet mounts over the
         * gate. */
        GateCover cover;
} PodContainer;

/* A container that exists, by its status. */
typedef struct ContainerId {
        Str name, id; /* id as the status has it: "containerd://0123..." */
} ContainerId;

typedef struct PodAnnotations {
        /* The keys that are written now. */
        Str allocation, assigned, assume_time, core, init_allocation, resize_status;
        /* The keys of older schedulers. */
        Str old_idx, old_dev, old_pod, old_assigned, old_assume_time;
        Str mirror; /* only on the mirror of a static pod: the UID by which the kubelet knows it */
        Str cpuset, numa_spec;
        Str resize_mem, resize_core;
        /* The values of POD_CARD_KEYS. */
        Str gpu_type, gpu_uuid;
        Str use_gputype, nouse_gputype, use_gpuuuid, nouse_gpuuuid;
        Str include_gpu_type, exclude_gpu_type, include_gpu_uuid, exclude_gpu_uuid;
} PodAnnotations;

/* What the pod's keys of gangs say besides the gang's name. */
typedef struct PodGangKeys {
        bool min;       /* a key says the number of members */
        bool groups;    /* KEY_GANG_GROUPS, ANNOTATION_GANG_GROUPS */
        bool pod_group; /* LABEL_POD_GROUP */
        bool native;    /* spec.schedulingGroup (1.36), or spec.workloadRef (1.35) */
        Str match;      /* KEY_GANG_MATCH, ANNOTATION_GANG_MATCH; empty when absent */
} PodGangKeys;

typedef struct Pod {
        ObjectMeta meta;
        PodAnnotations annotations;
        Str gpu_count_label; /* LABEL_POD_COUNT */
        /* A key names a gang (wire/pod_gang.h). A job's label does on pods of whole cards. */
        bool names_gang;
        PodGangKeys gang_keys;
        bool has_gates;   /* spec.schedulingGates */
        Str topology_job; /* LABEL_TOPOLOGY_JOB */
        Str node_name, scheduler_name, phase;
        Str node_mode;            /* LABEL_SCHEDULE of its nodeSelector */
        Str affinity;             /* spec.affinity, as JSON text; empty when absent */
        Str cpu, overhead_cpu;    /* requests of cpu by spec.resources and spec.overhead; empty when absent */
        PodContainer *containers; /* init containers and sidecars in order, then the main ones */
        size_t n_containers;
        /* No status says running: a container that waits has no process. (In a pod that failed in
         * an init container the others wait for ever.) */
        bool containers_ended;
        ContainerId *ids; /* by every list of statuses: the last start of each container */
        size_t n_ids;
} Pod;

/* `kind` and `apiVersion` are not looked at. Returns 0, OBJECT_E_MALFORMED (fault: path and reason;
 * *ret untouched) or -ENOMEM. */
int pod_decode(Str json, Arena *arena, Pod *ret, Fault *fault);

/* The phase is Succeeded or Failed: such a pod holds nothing once its containers have ended. */
bool pod_is_terminal(const Pod *pod);

/* Bit i: the i-th key of POD_SYSTEM_KEYS has a value on this pod. */
uint32_t pod_system_keys(const Pod *pod);
extern const Str pod_system_key_names[];
enum {
#define POD_SYSTEM_KEY_INDEX(member, key) POD_SYSTEM_KEY_##member,
        POD_SYSTEM_KEYS(POD_SYSTEM_KEY_INDEX)
#undef POD_SYSTEM_KEY_INDEX
                POD_SYSTEM_KEYS_COUNT
};
