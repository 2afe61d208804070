/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rows of the report: pods and nodes reduced to what the printers need. */

#include "base/str.h"

typedef struct InspectUse {
        uint32_t card;
        uint64_t mem, core; /* units and percent */
} InspectUse;

typedef struct InspectPod {
        Str node, namespace_, name;
        InspectUse *uses; /* by card */
        size_t n_uses;
        uint64_t pending_mem, pending_core; /* has no card yet */
        Str difference;                     /* between annotations and limits; empty: none */
        size_t order;                       /* of arrival: a later object replaces an earlier one */
} InspectPod;

typedef struct InspectCard {
        uint64_t total_mem, used_mem; /* units */
        uint64_t total_core, used_core;
} InspectCard;

typedef struct InspectNode {
        Str name, ip;
        Str unit_text; /* "GiB", "128MiB" */
        uint32_t unit_mib;
        uint64_t total_mem, total_core; /* allocatable */
        uint64_t *card_units;           /* by card index, as the node describes them */
        size_t n_described;
        size_t order;

        /* set by inspect_view() */
        const InspectPod *pods;
        size_t n_pods;
        InspectCard *cards; /* its own, and those that its pods claim */
        size_t n_cards;
        uint64_t used_mem, pending_mem, used_core, pending_core; /* used includes pending */
} InspectNode;
