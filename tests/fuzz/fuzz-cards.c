/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as the list of cards in the state directory, and as the CARDS of a command line. An
 * accepted list is the same when it is written and read; a refusal has a sentence. */

#include <assert.h>

#include "gpu/cards/simulated_cards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const CardList *l) {
        _cleanup_(card_list_done) CardList back = {0};
        _cleanup_buf_ Buf text = BUF_NULL;

        assert(l->n <= CARDS_MAX);
        for (size_t i = 0; i < l->n; i++) {
                assert(l->cards[i].index < CARDS_MAX && card_uuid_is_valid(l->cards[i].uuid));
                assert(i == 0 || l->cards[i - 1].index < l->cards[i].index);
        }
        card_list_write(l, &text);
        assert(buf_result(&text) == 0 && card_list_read(buf_str(&text), &back, NULL) == 0);
        assert(back.n == l->n);
        for (size_t i = 0; i < l->n; i++) /* texts that are not UTF-8 may change once */
                assert(strcmp(back.cards[i].uuid, l->cards[i].uuid) == 0 &&
                       back.cards[i].mib == l->cards[i].mib);
}

/* Both cards of a pair say the same of it, and the list keeps all links. */
static void check_links(const CardList *l) {
        _cleanup_(card_list_done) CardList back = {0};
        _cleanup_buf_ Buf text = BUF_NULL;

        for (size_t a = 0; a < l->n; a++)
                for (size_t b = 0; b < l->n; b++)
                        assert(card_list_rate(l, a, b) == card_list_rate(l, b, a));
        card_list_write(l, &text);
        if (card_list_read(buf_str(&text), &back, NULL) != 0)
                return; /* a model that is not UTF-8 grows, perhaps over the limit */
        for (size_t i = 0; i < l->n; i++)
                assert(memcmp(back.cards[i].peers, l->cards[i].peers, sizeof l->cards[i].peers) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(card_list_done) CardList l = {0}, simulated = {0};
        Str text = {(const char *) data, size};
        Fault fault = FAULT_NULL;
        int r;

        r = card_list_read(text, &l, &fault);
        assert(r == 0 || (r == CARDS_E_MALFORMED && fault.text[0] != '\0'));
        if (r == 0)
                check(&l);
        fault = FAULT_NULL;
        r = cards_simulate(text, STR("n"), &simulated, &fault);
        assert(r == 0 || (r == CARDS_E_MALFORMED && fault.text[0] != '\0'));
        if (r == 0)
                check_links(&simulated);
        return 0;
}
