/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The struct of a grant, for the ledger's files and placement. */

#include "share/grant.h"
#include "share/shape_tally.h"

struct Grant {
        struct LedgerNode *node;
        Grant *next, **link;
        uint64_t app;
        ShapeCount *shape; /* counts the shape of a pod's grant; NULL: it is not counted */
        uint32_t pending, pending_core;
        uint32_t cpu;
        uint32_t n_slices;
        uint16_t namespace_len, name_len, uid_len;
        bool has_core, whole;
        bool is_held;   /* from the annotation ANNOTATION_HELD_SLICES of its node, not from a pod */
        Slice slices[]; /* in the order of grant_compare_slices(); the three texts follow */
};

/* What a grant takes from one card. */
typedef struct GrantDemand {
        uint64_t mem, core;
} GrantDemand;

GrantDemand grant_demand(const Grant *g, uint32_t card);

/* Makes a grant that is in no list and charges nothing. Returns 0, -ENOMEM or -E2BIG, as
 * grant_new(). */
int grant_build(const GrantSpec *spec, Grant **ret);

void grant_link(Grant *g, struct LedgerNode *n, Grant **list);
void grant_unlink(Grant *g);

/* Adds the cards that the grant names to the node, so that grant_charge() cannot fail. Returns 0 or
 * -ENOMEM. */
int grant_reserve_cards(struct LedgerNode *n, const Grant *g);

/* Add the grant to the sums of its node and cards, and subtract it from them. */
void grant_charge(const Grant *g);
void grant_discharge(const Grant *g);
