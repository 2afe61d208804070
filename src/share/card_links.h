/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How the cards of a node are joined: GB/s of each pair and the NUMA node of each card. Nodes of
 * one shape share one object, with one table of the best sets of cards (card_set.h). */

#include "base/fault.h"
#include "base/hash.h"
#include "wire/card_info.h"

enum {
        CARD_LINKS_MAX = CARD_INFO_PEERS_MAX, /* greatest number of cards; indexes are below it */
        CARD_LINKS_TABLE = 8,                 /* a node with at most so many cards gets a table */
};

/* The shape of a node. It is a hash key, so it has no padding. */
typedef struct CardShapeKey {
        uint32_t n; /* greatest index + 1 */
        int32_t numa[CARD_LINKS_MAX];
        uint16_t rate[CARD_LINKS_MAX][CARD_LINKS_MAX]; /* GB/s by two indexes; symmetric; 0: not known */
} CardShapeKey;

typedef struct CardLinks {
        CardShapeKey key;
        /* best[idle][k]: the best set of k of the idle cards, as bit masks; filled if key.n <=
         * CARD_LINKS_TABLE */
        uint8_t best[1 << CARD_LINKS_TABLE][CARD_LINKS_TABLE + 1];
        unsigned references;
        struct CardLinks **table; /* the hash table that it is in; NULL: none */
        UT_hash_handle hh;
} CardLinks;

/* Makes the links of a node from its cards, which are sorted by index. *ret is NULL when links make
 * no difference (all pairs are alike, on one NUMA node), or when an index is CARD_LINKS_MAX or
 * more. Returns 0 or -ENOMEM. */
int card_links_from_info(const CardInfo *cards, size_t n, CardLinks **ret);

CardLinks *card_links_ref(CardLinks *links);   /* NULL for NULL */
CardLinks *card_links_unref(CardLinks *links); /* returns NULL */
