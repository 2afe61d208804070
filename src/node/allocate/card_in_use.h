/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What containers of this node hold or may hold of a card, by records, pages and counters. Where
 * slices grow beyond limits (slice_growth.h), a container is checked against it before it starts,
 * besides the ledger's check.
 *
 * Devices count once their container has started. A size above them counts as soon as it stands in
 * the record, because the container starts with a page of that size. A size below them leaves the
 * rest to slices that grow. */

#include "node/allocate/node_context.h"

/* Units of memory, or percent of compute. */
typedef struct CardInUse {
        uint32_t devices;
        /* Held above the devices: by the size in force, or by the counters as far as the record or
         * the node's annotation permits. */
        uint64_t above;
        /* Devices that slices below their limits leave free: not in their size in force, and not
         * held by the counters. */
        uint64_t below;
} CardInUse;

static inline uint64_t card_in_use_sum(CardInUse use) {
        return use.devices - use.below + use.above;
}

/* A size to try for a container: units or percent of all its cards; 0: its limit. */
typedef struct CardSize {
        const RecordContainer *container;
        uint32_t size;
} CardSize;

/* What the node's containers hold of the card. more: the devices that a container of `pod` is about
 * to start with; NULL: none. as: as if the container had this size; NULL: as it is. */
CardInUse card_in_use(const NodeContext *node, DeviceKind kind, uint32_t card, Str pod, const DeviceSet *more,
                      const CardSize *as);

/* Units of memory or percent of the card; 0 where the node does not have it. */
uint32_t card_in_use_capacity(const NodeContext *node, DeviceKind kind, uint32_t card);

/* Whether a container of `pod` may start with these devices. It may not where slices that have
 * grown, or hold more than their size, leave no room for them. *ret_card: the first card without
 * room. */
bool card_in_use_lets_start(const NodeContext *node, DeviceKind kind, Str pod, const DeviceSet *set,
                            uint32_t *ret_card);
