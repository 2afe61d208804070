/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The size of a slice. It is in this room because both the node's agent and programs that have
 * nothing but libc compute it. */

#include <stdint.h>

/* What an isolated container with `units` of the card's `dev` units sees as the card's memory, in
 * MiB: floor(card_mib x units / dev). The caller ensures that units <= dev, dev > 0 and card_mib <
 * 2^24. */
static inline uint64_t visible_mib(uint64_t card_mib, uint64_t units, uint64_t dev) {
        return card_mib * units / dev;
}

/* The fewest units for which visible_mib() is at least mib, which is at most card_mib. */
static inline uint64_t visible_units(uint64_t card_mib, uint64_t mib, uint64_t dev) {
        return (mib * dev + card_mib - 1) / card_mib;
}

/* Converts a size in MiB to units, where `count` units are `granted` MiB: both are rounded down by
 * visible_mib(), so this is rounded to the nearest. count < 2^32, mib < 2^31, granted > 0. */
static inline uint64_t visible_part(uint64_t mib, uint64_t granted, uint64_t count) {
        return (mib * count + granted / 2) / granted;
}
