/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A model of the kubelet's device manager (docs/internals/identity.md) in this process. It calls
 * the agent's functions, and stands in for all that they call: List, the checkpoint, the cgroups
 * and the API server. Admission is serial, and resources come in random order. Devices of init
 * containers are given to later ones, and random devices are given where the preference is bad. */

#include "node/allocate/orphans.h"
#include "node/allocate/resolver.h"
#include "node/allocate/start_verifier.h"
#include "random.h"

enum { MODEL_CARDS = 4, MODEL_UNITS = 16, MODEL_PODS = 64, MODEL_CONTAINERS = 4 };

typedef struct ModelContainer {
        char name[16];
        ContainerKind kind;
        uint32_t mem, core;
        DeviceSet held[DEVICE_KINDS_];
        char idx[64], units[16]; /* ALIYUN_COM_GPU_MEM_IDX and _CONTAINER, as Allocate said */
        bool proved[DEVICE_KINDS_];
} ModelContainer;

typedef struct ModelPod {
        char uid[24], name[24];
        ModelContainer containers[MODEL_CONTAINERS]; /* init containers first */
        size_t n;
        uint32_t cards;      /* how many */
        uint32_t place[4];   /* which */
        bool placed;         /* by the scheduler */
        bool in_api, active; /* the object; the kubelet counts it */
        bool admitted, processes;
} ModelPod;

typedef struct Model {
        Random random;
        ModelPod pods[MODEL_PODS];
        size_t n_pods;
        uint64_t lists, admissions, waits, rejected;
        bool ignore_preference; /* gives random devices, as a kubelet does that rejects the preference */
        bool checkpoint_gone;
        bool never_lists; /* every List fails until the deadline */
} Model;

extern Model model;

void model_start(uint64_t seed);
void model_end(void);
uint32_t model_random(uint32_t below);

void model_restart_agent(void);                   /* killed, and started again from disk and API */
ModelPod *model_make_pod(void);                   /* of random shape, with a place that has room, or NULL */
bool model_admit(ModelPod *pod, bool kill_agent); /* false: rejected */
bool model_prestart(ModelPod *pod);               /* false: not yet */
void model_check(const ModelPod *pod);            /* environment, devices and annotation agree */
void model_finish(ModelPod *pod);                 /* its containers end, then the object goes */
void model_force_delete(ModelPod *pod);           /* the object goes, its processes live */
void model_end_processes(ModelPod *pod);
size_t model_records(void);
size_t model_orphans(void);
