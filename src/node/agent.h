/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node agent as an object in an event loop: the machine's cards, offered to the kubelet as
 * devices, and who has which. */

#include <systemd/sd-event.h>

#include "kube/config.h"
#include "node/allocate/resolver.h"
#include "share/memory_unit.h"
#include "share/node_defaults.h"

typedef struct Agent Agent;

typedef struct AgentOptions {
        const KubeConfig *config; /* outlives the agent, as do the texts */
        const char *node_name;
        const char *kubelet_dir, *state_dir, *cdi_dir, *cgroup_root, *host_root;
        const char *metrics_listen; /* NULL: none */
        const char *simulate;       /* CARDS; NULL: those of the machine */
        const char
                *simulate_dir; /* where a simulated driver is mounted, whose cards these are; NULL: nowhere */
        const char *nvml;      /* NULL: libnvidia-ml.so.1 */
        MemoryUnit unit;
        DeviceAccess access;
        const char *slices, *gate; /* as in node/isolation/isolation.h */
        uint32_t slices_mib;       /* of the board's own tmpfs; 0: none is mounted, nor any for a slice */
        bool ignores_disable;
        ComputePolicy policy;  /* where the node's annotation says none */
        NodeDefaults defaults; /* of other settings, where its annotations say none */
        bool kills_excess;     /* else it is only told */
        bool kills_overuse; /* who has more of a card's time than his share, by the driver's word; else that is only told */
        bool kills_hung;  /* the container of a kernel that does not end; else that is only told */
        uint32_t hung;    /* s until a kernel is one */
        usec_t census;    /* 0: 1 s */
        int arbiter;      /* where the arbiter tells of kernels that do not end; -1: nowhere. The caller's */
        const char *proc; /* where processes are looked up */
} AgentOptions;

/* 0, or negative errno with a fault for people. */
int agent_new(sd_event *event, const AgentOptions *options, Agent **ret, Fault *fault);
Agent *agent_free(Agent *a);

/* A clean end: where the node's label says that it shares no more, its gpu-count becomes 0 first.
 * done is called once, when that is written or has taken too long. */
void agent_stop(Agent *a, void (*done)(void *userdata), void *userdata);

/* The verb `aliquot node`. Returns the exit code. */
int node_main(int argc, char **argv);

DEFINE_CLEANUP(Agent *, agent_free)
