/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The nodes of a trace and what pods hold on them: in a ledger of ours, and beside it as plain
 * numbers for the baselines. */

#include "share/placement.h"
#include "trace.h"

typedef struct WorldNode {
        const TraceNode *trace;
        LedgerNode *ledger;
        int64_t cpu, memory; /* left */
        uint32_t left[TRACE_CARDS_MAX];
        uint32_t sum;    /* of left */
        uint64_t change; /* when it last changed */
} WorldNode;

/* A pod that runs. */
typedef struct WorldPod {
        const TracePod *pod;
        uint32_t node;
        uint8_t cards; /* a bit each */
        Grant *grant;
} WorldPod;

typedef struct World {
        const Trace *trace;
        WorldNode *nodes;
        Ledger *ledger;
        const CardChoice *choices[TRACE_SPECS_MAX];
        Arena arena;
        int64_t used; /* thousandths of cards */
        uint64_t changes, n_uids;
} World;

void world_init(World *w, const Trace *t, NodeOrder order);
void world_done(World *w);

/* The request as our scheduler reads it; container is the caller's. */
Request world_request(const World *w, const TracePod *p, RequestContainer *container);

/* Whether processors and memory suffice: kube-scheduler's own filter. */
bool world_has_cpu(const WorldNode *n, const TracePod *p);

/* Whether the cards suffice, by the plain numbers. */
bool world_has_cards(const World *w, const WorldNode *n, const TracePod *p);

/* Puts the pod on these cards of the node, and takes it away. */
WorldPod world_place(World *w, const TracePod *p, uint32_t node, uint8_t cards);
void world_remove(World *w, WorldPod *p);
