/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim.h"

#include <assert.h>
#include <errno.h>

int sim_init(Sim *s, const CardList *cards, uint64_t reserved) {
        int r = 0;

        *s = (Sim){.max_objects = SIM_OBJECTS_MAX, .max_file_objects = SIM_FILE_OBJECTS_MAX};
        (void) sim_release_parse(sim_release_version_of(cards), &s->release, NULL); /* is valid */
        if (cards->n > SIM_CARDS_MAX)
                return -E2BIG;
        s->cards = calloc(cards->n + 1, sizeof *s->cards);
        if (!s->cards)
                return -ENOMEM;
        for (size_t i = 0; i < cards->n && r == 0; i++) {
                r = sim_card_init(&s->cards[i], &cards->cards[i], reserved);
                s->n_cards += r == 0;
        }
        if (r < 0)
                sim_done(s);
        return r;
}

void sim_done(Sim *s) {
        assert(s->n_files == 0 && s->n_objects == 0);
        for (size_t i = 0; i < s->n_cards; i++)
                sim_card_done(&s->cards[i]);
        sim_account_done(&s->account);
        free(s->cards);
        *s = (Sim){0};
}
