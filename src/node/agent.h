/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node agent as an object in an event loop: it offers the cards of the machine to the kubelet
 * as devices, and records which container has which. */

#include <systemd/sd-event.h>

#include "kube/config.h"
#include "node/allocate/resolver.h"
#include "share/memory_unit.h"
#include "share/node_defaults.h"

typedef struct Agent Agent;

typedef struct AgentOptions {
        const KubeConfig *config; /* borrowed, as are the texts */
        const char *node_name;
        const char *kubelet_dir, *state_dir, *cdi_dir, *cgroup_root, *host_root;
        const char *metrics_listen; /* NULL: none */
        const char *simulate;       /* cards without a driver; NULL: the cards of the machine */
        const char *simulate_dir;   /* mount of the simulated driver that has the cards; NULL: none */
        const char *nvml;           /* NULL: libnvidia-ml.so.1 */
        MemoryUnit unit;
        DeviceAccess access;
        const char *slices, *library; /* as in node/isolation/isolation.h */
        /* size of the tmpfs for slice pages; 0: no tmpfs is mounted */
        uint32_t slices_mib;
        bool ignores_disable, says_refusals; /* as in node/isolation/isolation.h */
        /* the compute policy, unless the node's annotation sets one */
        ComputePolicy policy;
        /* defaults of other settings, unless annotations set them */
        NodeDefaults defaults;
        /* Whether these containers are killed; else only an Event is written: */
        bool kills_excess;     /* with more memory than the slice */
        bool kills_overuse;    /* with more of a card's time than the share, as the driver reports it */
        bool kills_hung;       /* with a hung kernel */
        uint32_t hung;         /* seconds until a kernel counts as hung */
        bool grows;            /* slices may grow beyond their limits, as the scheduler permits */
        bool keeps_nvidia_off; /* a label keeps NVIDIA's device plugin off the node */
        /* isolated containers are refused with a driver newer than the table's
         * (gpu/rm/release.h) */
        bool known_drivers;
        usec_t census;    /* between two reads of what processes hold; 0: 1 s */
        int arbiter;      /* borrowed; the arbiter reports hung kernels there; -1: nowhere */
        const char *proc; /* where the host's proc is mounted */
} AgentOptions;

/* Returns 0, or negative errno with a fault for the log. */
int agent_new(sd_event *event, const AgentOptions *options, Agent **ret, Fault *fault);
Agent *agent_free(Agent *a);

/* Ends cleanly: if the node's label says that it no longer shares, and no pod holds slices, its
 * gpu-count is set to 0 first. Calls `done` once, when that is written or has taken too long. */
void agent_stop(Agent *a, void (*done)(void *userdata), void *userdata);

/* The verb `aliquot node`. Returns the exit code. */
int node_main(int argc, char **argv);

DEFINE_CLEANUP(Agent *, agent_free)
