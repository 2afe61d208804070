/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many grants each application has on each node. Spreading reads it for every node of the
 * cluster and every replica. Each application has a list sorted by the node's slot in the ledger. A
 * walk over all nodes walks along the list, without a look-up for each node. */

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

/* Count one grant of the application, and take it off. Application 0 stands for none and is not
 * counted. replicas_add() returns 0, or -ENOMEM with nothing changed. */
int replicas_add(Replicas **table, uint64_t app, uint32_t slot);
void replicas_remove(Replicas **table, uint64_t app, uint32_t slot);

/* The node in slot `from` has moved to slot `to`. Callers call it for each grant on the node: from
 * the second call for an application on it does nothing. */
void replicas_move(Replicas *table, uint64_t app, uint32_t from, uint32_t to);

const Replicas *replicas_of(const Replicas *table, uint64_t app); /* NULL when there are none */
uint32_t replicas_on(const Replicas *r, uint32_t slot);           /* r may be NULL */
