/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How placement orders cards and nodes: the node's label LABEL_PLACEMENT. */

#include "base/str.h"

typedef enum PlacementPolicy { PLACEMENT_BINPACK, PLACEMENT_SPREAD } PlacementPolicy;

/* Parses "binpack" or "spread"; empty is binpack. Returns false for other values: *ret is
 * unchanged. */
static inline bool placement_policy_parse(Str label, PlacementPolicy *ret) {
        bool spread = str_eq(label, STR("spread"));

        if (!spread && !str_is_empty(label) && !str_eq(label, STR("binpack")))
                return false;
        *ret = spread ? PLACEMENT_SPREAD : PLACEMENT_BINPACK;
        return true;
}
