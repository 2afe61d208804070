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
                         TEST(refuses_what_is_no_card), TEST(the_longest_model_fits),
                         TEST(as_many_cards_as_there_may_be), TEST(reads_what_it_wrote),
                         TEST(an_empty_list_is_a_list), TEST(refuses_a_broken_state),
                         TEST(refuses_one_card_more_than_there_may_be), TEST(lists_differ_by_any_field));
}
