/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one container of a placed pod holds, by the pod's and the node's own objects. */

#include "base/arena.h"
#include "local/tree.h"
#include "share/compute.h"
#include "share/ledger.h"
#include "wire/card_info.h"
#include "wire/pod.h"

typedef struct BoundPod {
        const json_t *pod;  /* as the API server has it now, bound and annotated */
        const json_t *node; /* the one it is on */
} BoundPod;

typedef struct PodSlices {
        Slice *own; /* of this container; in the arena, as all of this */
        size_t n;   /* 0: it has none, and the rest may be missing */
        uint32_t pod_units;
        MemoryUnit unit;
        ShareMode mode;
        CardInfo *cards; /* the node's */
        size_t n_cards;
        bool not_isolated;      /* it says CGPU_DISABLE */
        ComputeRequest request; /* percent: not set */
        CardCompute compute;    /* of its node */
        Fault odd;              /* what pod or node say of compute and nobody understands; "": nothing */
} PodSlices;

/* index: in spec.containers for CONTAINER_MAIN, else in spec.initContainers. Objects that do not
 * decode give no slices. 0 or -ENOMEM. */
int pod_slices_read(const BoundPod *place, ContainerKind kind, uint32_t index, Arena *arena, PodSlices *ret);

/* NULL when the node has no such card. */
const CardInfo *pod_slices_card(const PodSlices *s, uint32_t index);
