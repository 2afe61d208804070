/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many grants each application has on each node: what spreading asks of every node of the
 * cluster for every replica. Per application one list, sorted by the node's slot in the ledger, so
 * that a walk over all nodes walks along it instead of looking up each. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

typedef struct ReplicasOnNode {
        uint32_t slot, count;
} ReplicasOnNode;

typedef struct Replicas {
        uint64_t app;
        ReplicasOnNode *nodes;
        size_t n, room;
        UT_hash_handle hh;
} Replicas;

/* Application 0 is none: never counted. Returns 0 or -ENOMEM, and then nothing has changed. */
int replicas_add(Replicas **table, uint64_t app, uint32_t slot);
void replicas_remove(Replicas **table, uint64_t app, uint32_t slot);

/* The node with grants of this application moved to another slot, which had none. A no-op when it
 * has moved already: callers go grant by grant. */
void replicas_move(Replicas *table, uint64_t app, uint32_t from, uint32_t to);

const Replicas *replicas_of(const Replicas *table, uint64_t app); /* NULL when there are none */
uint32_t replicas_on(const Replicas *r, uint32_t slot);           /* r may be NULL */
