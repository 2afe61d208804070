/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one container of a placed pod holds, from the pod's and the node's objects. */

#include "base/arena.h"
#include "local/tree.h"
#include "share/compute.h"
#include "share/ledger.h"
#include "wire/card_info.h"
#include "wire/pod.h"

typedef struct BoundPod {
        const json_t *pod;  /* as the API server returns it, bound and annotated */
        const json_t *node; /* the pod's node */
} BoundPod;

typedef struct PodSlices {
        Slice *own; /* slices of this container; in the arena, like everything here */
        size_t n;   /* 0: none, and the rest may be unset */
        uint32_t pod_units;
        MemoryUnit unit;
        ShareMode mode;
        CardInfo *cards; /* cards of the node */
        size_t n_cards;
        bool not_isolated;      /* the pod sets CGPU_DISABLE */
        ComputeRequest request; /* of the container; its percent is not set */
        CardCompute compute;    /* compute settings of the node */
        Fault odd;              /* a compute setting that is not understood; "": none */
} PodSlices;

/* index: in spec.containers for CONTAINER_MAIN, else in spec.initContainers. Objects that do not
 * decode give no slices. Returns 0 or -ENOMEM. */
int pod_slices_read(const BoundPod *place, ContainerKind kind, uint32_t index, Arena *arena, PodSlices *ret);

/* NULL when the node has no such card. */
const CardInfo *pod_slices_card(const PodSlices *s, uint32_t index);
