/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/card_rates.h"

#include <errno.h>

_Static_assert((int) CARD_PEERS_MAX == (int) CARD_INFO_PEERS_MAX, "all known peers are published");

int card_rates_describe(const CardList *l, CardInfo *infos, uint16_t **ret_rates) {
        uint16_t *rates;
        size_t n = 0;

        *ret_rates = NULL;
        if (!card_list_rates_differ(l))
                return 0;
        for (size_t i = 0; i < l->n; i++)
                if (l->cards[i].index < CARD_PEERS_MAX)
                        n = l->cards[i].index + 1; /* the cards are sorted by index */
        rates = calloc(l->n * n + 1, sizeof *rates);
        if (!rates)
                return -ENOMEM;
        for (size_t i = 0; i < l->n; i++) {
                for (size_t k = 0; k < l->n; k++)
                        if (l->cards[k].index < CARD_PEERS_MAX)
                                rates[i * n + l->cards[k].index] = card_list_rate(l, i, k);
                infos[i].peers = rates + i * n;
                infos[i].n_peers = n;
        }
        *ret_rates = rates;
        return 0;
}
