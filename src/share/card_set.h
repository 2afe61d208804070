/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which cards of a node are joined best. Sets of cards are bit masks, bit i for the card of index
 * i. The best set of k cards has, in this order:
 *
 *   1. the largest rate of its slowest pair, because a ring or a tree runs at the slowest link
 *   2. the largest sum of the rates of its pairs
 *   3. the best set of k cards, by 1 and 2, among the cards that it leaves
 *   4. all its cards on one NUMA node
 *   5. the lowest indexes, compared from the lowest
 *
 * Up to 16 cards the search is complete, except that rule 3 compares sets until CARD_SET_STEPS
 * steps are done. Of more cards the set is grown one card after another, by rules 1, 2 and 5. */

#include "share/card_links.h"

enum {
        CARD_SET_SEARCHED = 16,
        CARD_SET_STEPS = 1 << 15, /* sets that are judged, of any size; enough for all sets of 10 cards */
};

/* The value of a set by rules 1 and 2: rate of the slowest pair in the upper half, sum in the
 * lower. Without a pair the rate counts as the largest. */
uint64_t card_set_value(const CardLinks *links, uint32_t set);

/* Chooses k cards of `may` that make the best set together with all of `must`. The two masks are
 * disjoint, `may` has at least k cards, and all indexes are below links->key.n. Returns the mask of
 * the k cards. */
uint32_t card_set_choose(const CardLinks *links, uint32_t must, uint32_t may, unsigned k);

/* Returns the equal object of the table, and releases `links`; or else adds `links` to the table,
 * with its table of sets. If memory is out, `links` stays outside of the table. links may be
 * NULL. */
CardLinks *card_set_intern(CardLinks **table, CardLinks *links);
