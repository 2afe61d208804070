/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/simulated_cards.h"
#include "test.h"

static CardList simulate(const char *text, const char *seed) {
        CardList l = {0};

        ASSERT_OK(cards_simulate(str_from(text), str_from(seed), &l, NULL));
        return l;
}

static void simulates_groups(void) {
        _cleanup_(card_list_done) CardList l = simulate("2xTesla V100:16160MiB, A10:24GiB", "n1");

        ASSERT_INT(l.n, 3);
        ASSERT_TEXT(l.cards[1].model, "Tesla V100");
        ASSERT_INT(l.cards[1].mib, 16160);
        ASSERT_INT(l.cards[2].mib, 24 * 1024);
        for (uint32_t i = 0; i < l.n; i++) {
                ASSERT_INT(l.cards[i].index, i);
                ASSERT_INT(l.cards[i].minor, i);
                ASSERT_INT(l.cards[i].numa, -1);
                ASSERT_TRUE(l.cards[i].healthy && card_uuid_is_valid(l.cards[i].uuid));
                ASSERT_TEXT(l.cards[i].pci, "");
        }
}

static void the_same_text_and_seed_give_the_same_cards(void) {
        _cleanup_(card_list_done) CardList a = simulate("2xA:1GiB", "n1"), b = simulate("2xA:1GiB", "n1");
        _cleanup_(card_list_done) CardList c = simulate("2xA:1GiB", "n2");

        ASSERT_TRUE(card_list_eq(&a, &b));
        ASSERT_FALSE(card_list_eq(&a, &c));
        /* UUIDs stand in annotations of running clusters, so a release must not change them. */
        ASSERT_TEXT(a.cards[0].uuid, "GPU-08b37b07-b558-d4c0-6b35-2c38e5479300");
}

static void refuses_what_is_no_card(void) {
        static const struct {
                const char *text, *words;
        } cases[] = {
                {"", "\"\" must be COUNTxMODEL:MEMORY, as 4xTesla-V100:16160MiB"},
                {"4x:16GiB", "\"4x:16GiB\" must be"},
                {"0xA:16GiB", "must be"},
                {"A:16GiB,", "\"\" must be"},
                {"A:99999999999999GiB", "must be"},
                {"257xA:16GiB", "\"257xA:16GiB\" makes more than 256 cards of one node"},
                {"256xA:16GiB,B:1GiB", "\"B:1GiB\" makes more than 256 cards"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CardList l = {.n = 7};
                Fault fault = FAULT_NULL;

                ASSERT_INT(cards_simulate(str_from(cases[i].text), STR("n"), &l, &fault), CARDS_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, cases[i].words);
                ASSERT_INT(l.n, 7);
        }
}

static void simulates_links(void) {
        _cleanup_(card_list_done) CardList l = simulate(
                "4xQuadro RTX 6000/8000:24GiB,1xA:1GiB/0-1=NV2/2+3=NV1/0-3=PHB/0+2=PIX/4=NUMA1", "n");
        static const uint16_t rates[5][5] = {
                {0, 50, 16, 10, 5}, {50, 0, 10, 10, 5}, {16, 10, 0, 25, 5},
                {10, 10, 25, 0, 5}, {5, 5, 5, 5, 0},
        };

        ASSERT_INT(l.n, 5);
        ASSERT_TEXT(l.cards[0].model, "Quadro RTX 6000/8000");
        for (size_t a = 0; a < 5; a++)
                for (size_t b = 0; b < 5; b++)
                        ASSERT_INT(card_list_rate(&l, a, b), rates[a][b]);
        ASSERT_INT(l.cards[4].numa, 1);
        ASSERT_INT(l.cards[3].numa, -1);
        ASSERT_TRUE(card_list_rates_differ(&l));
}

/* All cards of a switch are peers, with the links of the card that has fewer. */
static void simulates_a_switch(void) {
        _cleanup_(card_list_done) CardList l = simulate("4xA:1GiB/0-2=SW6/2=SW3", "n");
        _cleanup_(card_list_done) CardList even = simulate("8xA:1GiB/0-7=SW12/0-7=PIX", "n");
        _cleanup_(card_list_done) CardList one = simulate("1xA:1GiB/0=NV1", "n");

        ASSERT_INT(card_list_rate(&l, 0, 1), 150);
        ASSERT_INT(card_list_rate(&l, 0, 2), 75);
        ASSERT_INT(card_list_rate(&l, 0, 3), 5);
        ASSERT_TRUE(card_list_rates_differ(&l));
        ASSERT_INT(card_list_rate(&even, 6, 7), 300);
        ASSERT_FALSE(card_list_rates_differ(&even));
        ASSERT_FALSE(card_list_rates_differ(&one));
}

static void without_links_nothing_is_known(void) {
        _cleanup_(card_list_done) CardList l = simulate("3xA:1GiB", "n");

        ASSERT_INT(card_list_rate(&l, 0, 1), 0);
        ASSERT_FALSE(card_list_rates_differ(&l));
}

static void refuses_what_is_no_link(void) {
        static const struct {
                const char *text, *words;
        } cases[] = {
                {"2xA:1GiB/", "\"\" must be CARDS=LINK, as 0-3=NV2 or 0+4=PHB"},
                {"2xA:1GiB/0-1", "\"0-1\" must be CARDS=LINK"},
                {"2xA:1GiB/0-1=NV0", "\"0-1=NV0\" must be"},
                {"2xA:1GiB/0-1=NV19", "must be"},
                {"2xA:1GiB/0-1=SW0", "must be"},
                {"2xA:1GiB/0-1=pix", "must be"},
                {"2xA:1GiB/1-0=PIX", "must be"},
                {"2xA:1GiB/0-=PIX", "must be"},
                {"2xA:1GiB/0+=PIX", "must be"},
                {"2xA:1GiB/0-1=NUMA32", "must be"},
                {"2xA:1GiB/0-2=PIX", "\"0-2=PIX\" names card 2 of 2 cards"},
                {"2xA:1GiB/0-4294967295=PIX", "names card 4294967295 of 2 cards"},
                {"33xA:1GiB/0-1=PIX", "links need at most 32 cards, not 33"},
                {"2xA:1GiB/0-1=PIX/x", "\"x\" must be"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CardList l = {.n = 7};
                Fault fault = FAULT_NULL;

                ASSERT_INT(cards_simulate(str_from(cases[i].text), STR("n"), &l, &fault), CARDS_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, cases[i].words);
                ASSERT_INT(l.n, 7);
        }
}

static void links_survive_a_restart(void) {
        _cleanup_(card_list_done) CardList l = simulate("5xA:1GiB/0-3=NV2/4=SW3/0-1=NUMA1", "n"), back = {0};
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;

        card_list_write(&l, &text);
        ASSERT_OK(card_list_read(buf_str(&text), &back, &fault));
        ASSERT_TRUE(card_list_eq(&l, &back));
        back.cards[1].peers[2].links++;
        ASSERT_FALSE(card_list_eq(&l, &back));
        ASSERT_INT(card_list_read(STR("{\"cards\":[{\"index\":0,\"uuid\":\"GPU-1\",\"peers\":[19]}]}"), &back,
                                  &fault),
                   CARDS_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "not a peer");
}

static void the_longest_model_fits(void) {
        char text[128] = {0};
        CardList none = {0};

        memset(text, 'M', 95);
        memcpy(text + 95, ":1GiB", 6);
        {
                _cleanup_(card_list_done) CardList l = simulate(text, "n");

                ASSERT_INT(strlen(l.cards[0].model), 95);
        }
        memset(text, 'M', 96);
        memcpy(text + 96, ":1GiB", 6);
        ASSERT_INT(cards_simulate(str_from(text), STR("n"), &none, NULL), CARDS_E_MALFORMED);
}

static void as_many_cards_as_there_may_be(void) {
        _cleanup_(card_list_done) CardList l = simulate("256xA:1GiB", "n"), back = {0};
        _cleanup_buf_ Buf text = BUF_NULL;

        ASSERT_INT(l.n, CARDS_MAX);
        card_list_write(&l, &text);
        ASSERT_OK(buf_result(&text));
        ASSERT_OK(card_list_read(buf_str(&text), &back, NULL));
        ASSERT_TRUE(card_list_eq(&l, &back));
}

static void reads_what_it_wrote(void) {
        _cleanup_(card_list_done) CardList l = simulate("3xA \"B\" \\:1GiB", "n"), back = {0};
        _cleanup_buf_ Buf text = BUF_NULL;

        l.cards[1].healthy = false;
        l.cards[1].numa = 3;
        l.cards[1].minor = UINT32_MAX;
        l.cards[2].index = 255;
        (void) snprintf(l.cards[1].pci, sizeof l.cards[1].pci, "00000000:3B:00.0");
        (void) snprintf(l.cards[1].trouble, sizeof l.cards[1].trouble, "fell off the bus\nand hurt itself");
        card_list_write(&l, &text);
        ASSERT_OK(card_list_read(buf_str(&text), &back, NULL));
        ASSERT_TRUE(card_list_eq(&l, &back));
}

static void an_empty_list_is_a_list(void) {
        _cleanup_(card_list_done) CardList none = {0}, back = {0};
        _cleanup_buf_ Buf text = BUF_NULL;

        card_list_write(&none, &text);
        ASSERT_STR(buf_str(&text), STR("{\"cards\":[]}"));
        ASSERT_OK(card_list_read(buf_str(&text), &back, NULL));
        ASSERT_INT(back.n, 0);
}

#define UUIDS(a, b) "{\"cards\":[{\"uuid\":\"" a "\",\"index\":0},{\"uuid\":\"" b "\",\"index\":1}]}"

static void refuses_a_broken_state(void) {
        static const char long_uuid[] = "{\"cards\":[{\"uuid\":\"GPU-"
                                        "000000000000000000000000000000000000000000000000000000000000\"}]}";
        static const struct {
                const char *text, *words;
        } cases[] = {
                {"", "byte 0"},
                {"[]", "not an object"},
                {"null", "not an object"},
                {"{\"cards\":[null]}", "not a card"},
                {"{\"cards\":[{}]}", "UUID is missing"},
                {UUIDS("GPU-1", "GPU-1"), "there before"},
                {UUIDS("GPU-1", "../../x"), "malformed"},
                {UUIDS("GPU-1", "GPU-2-"), "malformed"},
                {UUIDS("GPU-1", "1GPU"), "malformed"},
                {long_uuid, "too long"},
                {"{\"cards\":[{\"uuid\":\"GPU-1\",\"index\":256}]}", "cards[0].index: too large"},
                {"{\"cards\":[{\"uuid\":\"GPU-1\",\"index\":1},{\"uuid\":\"GPU-2\",\"index\":1}]}",
                 "by rising index"},
                {"{\"cards\":[{\"uuid\":\"GPU-1\",\"mib\":4294967296}]}", "too large"},
                {"{\"cards\":[{\"uuid\":\"GPU-1\",\"numa\":-2}]}", "not a NUMA node"},
                {"{\"cards\":[{\"uuid\":\"GPU\\u00001\"}]}", "NUL"},
                {"{\"cards\":[{\"uuid\":\"GPU-1\"}]", "ends"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CardList l = {.n = 7};
                Fault fault = FAULT_NULL;

                ASSERT_INT(card_list_read(str_from(cases[i].text), &l, &fault), CARDS_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, cases[i].words);
                ASSERT_INT(l.n, 7);
        }
}

static void refuses_one_card_more_than_there_may_be(void) {
        _cleanup_(card_list_done) CardList l = {0};
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;

        buf_append_str(&text, STR("{\"cards\":["));
        for (unsigned i = 0; i <= CARDS_MAX; i++)
                buf_appendf(&text, "%s{\"uuid\":\"GPU-%u\",\"index\":%u}", i > 0 ? "," : "", i,
                            i < CARDS_MAX ? i : CARDS_MAX - 1);
        buf_append_str(&text, STR("]}"));
        ASSERT_INT(card_list_read(buf_str(&text), &l, &fault), CARDS_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "too many cards");
}

static void lists_differ_by_any_field(void) {
        _cleanup_(card_list_done) CardList l = simulate("2xA:1GiB", "n"), other = {0};

        ASSERT_OK(card_list_copy(&l, &other));
        ASSERT_TRUE(card_list_eq(&l, &other));
        other.n = 1;
        ASSERT_FALSE(card_list_eq(&l, &other));
        other.n = 2;
        other.cards[1].healthy = false;
        ASSERT_FALSE(card_list_eq(&l, &other));
        other.cards[1] = l.cards[1];
        other.cards[1].trouble[0] = 'x';
        ASSERT_FALSE(card_list_eq(&l, &other));
}

int main(void) {
        return TEST_MAIN(TEST(simulates_groups), TEST(the_same_text_and_seed_give_the_same_cards),
                         TEST(refuses_what_is_no_card), TEST(simulates_links), TEST(simulates_a_switch),
                         TEST(without_links_nothing_is_known), TEST(refuses_what_is_no_link),
                         TEST(links_survive_a_restart), TEST(the_longest_model_fits),
                         TEST(as_many_cards_as_there_may_be), TEST(reads_what_it_wrote),
                         TEST(an_empty_list_is_a_list), TEST(refuses_a_broken_state),
                         TEST(refuses_one_card_more_than_there_may_be), TEST(lists_differ_by_any_field));
}
