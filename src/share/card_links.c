/* SPDX-License-Identifier: Apache-2.0 */
#include "share/card_links.h"

#include <errno.h>
#include <stdlib.h>

static uint16_t rate_of(const CardInfo *from, const CardInfo *to) {
        return to->index < from->n_peers ? from->peers[to->index] : 0;
}

/* Fills the key. The rate of a pair is the lower one of what its two cards report. */
static void fill(CardShapeKey *key, const CardInfo *cards, size_t n) {
        for (size_t i = 0; i < CARD_LINKS_MAX; i++)
                key->numa[i] = -1;
        for (size_t a = 0; a < n; a++) {
                key->numa[cards[a].index] = cards[a].numa;
                key->n = cards[a].index + 1; /* cards are sorted by index */
                for (size_t b = 0; b < n; b++) {
                        uint16_t there = rate_of(&cards[a], &cards[b]), back = rate_of(&cards[b], &cards[a]);

                        if (a != b)
                                key->rate[cards[a].index][cards[b].index] = there < back ? there : back;
                }
        }
}

static bool says_nothing(const CardShapeKey *key, const CardInfo *cards, size_t n) {
        if (n > 0 && cards[n - 1].index >= CARD_LINKS_MAX)
                return true;
        for (size_t a = 1; a < n; a++) {
                if (cards[a].numa != cards[0].numa)
                        return false;
                for (size_t b = 0; b < a; b++)
                        if (key->rate[cards[a].index][cards[b].index] !=
                            key->rate[cards[1].index][cards[0].index])
                                return false;
        }
        return true;
}

int card_links_from_info(const CardInfo *cards, size_t n, CardLinks **ret) {
        CardShapeKey key;

        *ret = NULL;
        if (n < 2 || cards[n - 1].index >= CARD_LINKS_MAX)
                return 0;
        memset(&key, 0, sizeof key);
        fill(&key, cards, n);
        if (says_nothing(&key, cards, n))
                return 0;
        *ret = calloc(1, sizeof **ret);
        if (!*ret)
                return -ENOMEM;
        (*ret)->key = key;
        (*ret)->references = 1;
        return 0;
}

CardLinks *card_links_ref(CardLinks *links) {
        if (links)
                links->references++;
        return links;
}

CardLinks *card_links_unref(CardLinks *links) {
        if (!links || --links->references > 0)
                return NULL;
        if (links->table)
                HASH_DELETE(hh, *links->table, links);
        free(links);
        return NULL;
}
