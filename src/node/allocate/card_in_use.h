/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What containers of this node hold or may hold of a card, by records, pages and counters. It is
 * the second barrier beside the ledger, where slices grow beyond limits (slice_growth.h).
 *
 * Devices count once their container has started. A size above them counts as soon as it stands in
 * the record, because the container starts with a page of that size. A size below them leaves the
 * rest to slices that grow. */

#include "node/allocate/node_context.h"

/* Units of memory, or percent of compute. */
typedef struct CardInUse {
        uint32_t devices;
        /* The size in force above the devices, or what the counters say, up to the permit of the
         * record or the pod's entries in the annotation of the node. */
        uint64_t above;
        /* The devices that slices below their limits neither have in force nor hold, as the
         * counters say. */
        uint64_t below;
} CardInUse;

static inline uint64_t card_in_use_sum(CardInUse use) {
        return use.devices - use.below + use.above;
}

/* A size that a container may get, units or percent of all its cards; 0: its limit. */
typedef struct CardSize {
        const RecordContainer *container;
        uint32_t size;
} CardSize;

/* more: the devices that a container of `pod` is about to start with; NULL: none. as: as if the
 * container had this size; NULL: as it is. */
CardInUse card_in_use(const NodeContext *node, DeviceKind kind, uint32_t card, Str pod, const DeviceSet *more,
                      const CardSize *as);

/* 0 where the node does not have the card. */
uint32_t card_in_use_capacity(const NodeContext *node, DeviceKind kind, uint32_t card);

/* Whether a container of `pod` may start with these devices. It may not where slices that have
 * grown, or hold more than their size, leave no room for them. *ret_card: the first card without
 * room. */
bool card_in_use_lets_start(const NodeContext *node, DeviceKind kind, Str pod, const DeviceSet *set,
                            uint32_t *ret_card);
