/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How much of a card a slice is. Here, because programs reckon with it that have nothing but libc,
 * and the node's agent. */

#include <stdint.h>

/* What an isolated container with `units` of the card's `dev` units sees as the card's memory, in
 * MiB (CONTRACT section 6): floor(card_MiB x units / dev). units <= dev and dev > 0 are the
 * caller's, and a card has fewer MiB than 2^24. */
static inline uint64_t visible_mib(uint64_t card_mib, uint64_t units, uint64_t dev) {
        return card_mib * units / dev;
}
