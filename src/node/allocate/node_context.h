/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* This folder answers the calls of the kubelet:
 *
 *     GetPreferredAllocation  resolver.c: finds the pod and its container; resolver_place.c for one
 *                             without cards, resolver_answer.c for the answer
 *     Allocate                allocator.c, called by resolver.c
 *     PreStartContainer       start_verifier.c: waits; start_check.c: one attempt, on evidence.c
 *
 * Pods that change or go are for start_verifier.c, orphans.c and repair.c (node/watches.c).
 *
 * What the parts of this folder share: the node's pods, records and cards, and the clients by which
 * they ask and write. The agent owns the context and everything it points to. It lends the context
 * to each part, and all of it outlives every part. */

#include <systemd/sd-event.h>

#include "kube/client.h"
#include "node/allocate/pod_patcher.h"
#include "node/isolation/isolation.h"
#include "node/kubelet/pod_resources.h"
#include "node/limits/memory_limits.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"

/* The annotation of what slices may hold above limits (slice_growth.h). */
typedef struct SliceGrowth {
        bool enabled;    /* new growth is accepted */
        char *seen;      /* the annotation as it was seen last; NULL: absent */
        uint64_t serial; /* the largest that was seen or written */
        char *mine;      /* the text that this process wants there; NULL: it has written none */
        bool told_full;  /* it has logged that the annotation needs too many entries */
} SliceGrowth;

typedef struct NodeContext {
        sd_event *event;
        Roster *roster;
        Records *records;
        const Inventory *inventory;
        Isolation *isolation;        /* NULL: none */
        MemoryLimits *limits;        /* NULL: none */
        PodResources *pod_resources; /* the kubelet's List; set before the first call of the kubelet */
        KubeClient *client;
        PodPatcher *pod_patcher;   /* set before the first call of the kubelet */
        const SliceGrowth *growth; /* NULL: no slice grows beyond its limit */
        /* The cards are those of an earlier run of the agent: the driver has not answered yet. */
        bool cards_are_old;
} NodeContext;
