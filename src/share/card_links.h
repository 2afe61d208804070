/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How the cards of a node are joined: GB/s of each pair and the NUMA node of each card. Nodes of
 * one shape share one object, with one table of the best sets of cards (card_set.h). */

#include "base/fault.h"
#include "base/hash.h"
#include "wire/card_info.h"

enum {
        CARD_LINKS_MAX = CARD_INFO_PEERS_MAX, /* cards, by index */
        CARD_LINKS_TABLE = 8,                 /* up to that many have a table */
};

/* The key of the shape: no padding. */
typedef struct CardShapeKey {
        uint32_t n; /* indexes are below it */
        int32_t numa[CARD_LINKS_MAX];
        uint16_t rate[CARD_LINKS_MAX][CARD_LINKS_MAX]; /* both ways the same; 0: not known */
} CardShapeKey;

typedef struct CardLinks {
        CardShapeKey key;
        /* [idle cards][k]: the best k of them; for n up to CARD_LINKS_TABLE */
        uint8_t best[1 << CARD_LINKS_TABLE][CARD_LINKS_TABLE + 1];
        unsigned references;
        struct CardLinks **table; /* where it stands; NULL: nowhere */
        UT_hash_handle hh;
} CardLinks;

/* Makes the links of a node from its cards. *ret is NULL when they say nothing: all pairs are alike
 * and on one NUMA node, or a card has an index of CARD_LINKS_MAX or more. Returns 0 or -ENOMEM. */
int card_links_from_info(const CardInfo *cards, size_t n, CardLinks **ret);

CardLinks *card_links_ref(CardLinks *links);   /* NULL: NULL */
CardLinks *card_links_unref(CardLinks *links); /* NULL */
