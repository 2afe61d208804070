/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A ConfigMap in kube-system that takes cards of a node out of service. Its name names the node,
 * and two of its keys name cards. Each entry of a key is judged separately. Pure. */

#include "base/arena.h"
#include "base/fault.h"
#include "share/card_indexes.h"

typedef struct FenceKey {
        CardIndexes fenced, sound; /* cards that valid entries fence; cards that valid entries name */
        Fault wrong;               /* about invalid entries; "": all are valid */
} FenceKey;

typedef struct FenceMap {
        Str name, node; /* node points into name */
        FenceKey devices, gpus;
} FenceMap;

enum { FENCE_MAP_E_MALFORMED = 1, FENCE_MAP_E_NOT_OURS };

/* Decodes the object; texts of *ret live as long as `configmap` and `arena`. Returns 0, also where
 * entries are wrong; -ENOMEM; FENCE_MAP_E_NOT_OURS for another name or namespace; or
 * FENCE_MAP_E_MALFORMED with a fault: it is no ConfigMap. An object without a namespace is taken
 * for one of kube-system. */
int fence_map_read(Str configmap, Arena *arena, FenceMap *ret, Fault *fault);
