/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One ConfigMap of kube-system that takes cards out of service: its name says of which node, and
 * each of two keys names cards. Each entry of a key is judged by itself. Pure. */

#include "base/arena.h"
#include "base/fault.h"
#include "share/card_indexes.h"

typedef struct FenceKey {
        CardIndexes fenced, sound; /* the cards that the understood entries name */
        Fault wrong;               /* names the other entries; "": all entries are understood */
} FenceKey;

typedef struct FenceMap {
        Str name, node; /* node is a part of name */
        FenceKey devices, gpus;
} FenceMap;

enum { FENCE_MAP_E_MALFORMED = 1, FENCE_MAP_E_NOT_OURS };

/* Decodes the object; texts of *ret live as long as `configmap` and `arena`. Returns 0, also where
 * entries are wrong; -ENOMEM; FENCE_MAP_E_NOT_OURS for another name or namespace; or
 * FENCE_MAP_E_MALFORMED with a fault: it is no ConfigMap. An object without a namespace is taken
 * for one of kube-system. */
int fence_map_read(Str configmap, Arena *arena, FenceMap *ret, Fault *fault);
