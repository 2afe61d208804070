/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "exact.h"
#include "random.h"
#include "wire/allocation.h"
#include "wire/card_info.h"

static void reads_the_documented_example(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Allocation a;

        ASSERT_OK(allocation_parse(STR("{\"0\":{\"1\":1},\"1\":{\"1\":7}}"), &arena, &a, NULL));
        ASSERT_INT(a.n_entries, 2);
        ASSERT_INT(a.entries[0].container, 0);
        ASSERT_INT(a.entries[0].card, 1);
        ASSERT_INT(a.entries[0].amount, 1);
        ASSERT_INT(a.entries[1].container, 1);
        ASSERT_INT(a.entries[1].card, 1);
        ASSERT_INT(a.entries[1].amount, 7);
}

/* The text, as this program writes it. */
static void assert_reads_as(const char *text, const char *expected) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf out = BUF_NULL;
        Fault fault = FAULT_NULL;
        Allocation a;

        ASSERT_OK(allocation_parse(str_from(text), &arena, &a, &fault));
        allocation_format(a.entries, a.n_entries, &out);
        ASSERT_STR(buf_str(&out), str_from(expected));
}

static void reads_what_schedulers_write(void) {
        assert_reads_as("{}", "{}");
        assert_reads_as("null", "{}");
        assert_reads_as("{\"0\":{}}", "{}");
        assert_reads_as("{\"0\":null}", "{}");
        assert_reads_as(" { \"0\" : { \"3\" : 2 , \"1\" : 2 } } ", "{\"0\":{\"1\":2,\"3\":2}}");
        assert_reads_as("{\"10\":{\"0\":1},\"9\":{\"0\":1}}", "{\"9\":{\"0\":1},\"10\":{\"0\":1}}");
        assert_reads_as("{\"0\":{\"0\":\"4\"}}", "{\"0\":{\"0\":4}}");
        assert_reads_as("{\"0\":{\"0\":4.0,\"1\":1e1}}", "{\"0\":{\"0\":4,\"1\":10}}");
        assert_reads_as("{\"0\":{\"0\":0,\"1\":5},\"1\":{\"0\":0}}", "{\"0\":{\"1\":5}}");
        assert_reads_as("{\"1023\":{\"255\":4294967295}}", "{\"1023\":{\"255\":4294967295}}");
}

static void refuses_what_contradicts_itself(void) {
        static const struct {
                const char *text, *fault;
        } bad[] = {
                {"", "the text ends"},
                {"[]", "not an object"},
                {"{\"0\":1}", "0: not an object"},
                {"{\"0\":{\"0\":1}", "the text ends"},
                {"{\"0\":{\"0\":1}} x", "something follows"},
                {"{\"a\":{\"0\":1}}", "a: this key is not an index"},
                {"{\"-1\":{\"0\":1}}", "-1: this key is not an index"},
                {"{\"0\":{\"x\":1}}", "0.x: this key is not an index"},
                {"{\"0\":{\"256\":1}}", "0.256: this key is not an index"},
                {"{\"1024\":{\"0\":1}}", "1024: this key is not an index"},
                {"{\"99999999999\":{\"0\":1}}", "this key is not an index"},
                {"{\"0\":{\"0\":-1}}", "0.0: out of range"},
                {"{\"0\":{\"0\":1.5}}", "0.0: not a whole number"},
                {"{\"0\":{\"0\":4294967296}}", "0.0: out of range"},
                {"{\"0\":{\"0\":99999999999999999999}}", "0.0: out of range"},
                {"{\"0\":{\"0\":null}}", "0.0: out of range"},
                {"{\"0\":{\"0\":true}}", "0.0: not a number"},
                {"{\"0\":{\"0\":\"\"}}", "0.0: not a whole number"},
                {"{\"0\":{\"0\":\"-4\"}}", "0.0: not a whole number"},
                {"{\"0\":{\"0\":\"4Gi\"}}", "0.0: not a whole number"},
                {"{\"0\":{\"0\":\"4294967296\"}}", "0.0: out of range"},
                {"{\"0\":{\"0\":1,\"0\":1}}", "container 0 has card 0 twice"},
                {"{\"0\":{\"0\":1,\"00\":0}}", "container 0 has card 0 twice"},
                {"{\"7\":{\"3\":1},\"7\":{\"3\":1}}", "container 7 has card 3 twice"},
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                Allocation a = {.n_entries = 77};
                Fault fault = FAULT_NULL;

                ASSERT_INT(allocation_parse(str_from(bad[i].text), &arena, &a, &fault),
                           ALLOCATION_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, bad[i].fault);
                ASSERT_INT(a.n_entries, 77);
        }
}

static void holds_the_entry_limit(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;
        AllocationEntry entries[4097];
        Allocation a;

        for (uint32_t i = 0; i < ELEMENTSOF(entries); i++)
                entries[i] = (AllocationEntry){.container = i / 256, .card = i % 256, .amount = 1};
        allocation_format(entries, 4096, &text);
        ASSERT_OK(allocation_parse(buf_str(&text), &arena, &a, NULL));
        ASSERT_INT(a.n_entries, 4096);
        buf_clear(&text);
        allocation_format(entries, 4097, &text);
        ASSERT_INT(allocation_parse(buf_str(&text), &arena, &a, &fault), ALLOCATION_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "more entries than any pod has");
}

/* Any allocation is read back as it was written. */
static void random_allocations_round_trip(void) {
        Random random = {11};

        for (unsigned round = 0; round < 5000; round++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                _cleanup_buf_ Buf text = BUF_NULL;
                AllocationEntry entries[64];
                Fault fault = FAULT_NULL;
                Allocation a;
                size_t n = 0;

                for (uint32_t container = 0; container < 6; container++)
                        for (uint32_t card = random_below(&random, 8); card < 16 && n < 64;
                             card += 1 + random_below(&random, 9))
                                entries[n++] =
                                        (AllocationEntry){.container = container * 170,
                                                          .card = card * 17,
                                                          .amount = (uint32_t) random_bits(&random) | 1};
                n = random_below(&random, n + 1);
                allocation_format(entries, n, &text);
                ASSERT_OK(allocation_parse(buf_str(&text), &arena, &a, &fault));
                ASSERT_INT(a.n_entries, n);
                ASSERT_TRUE(n == 0 || memcmp(a.entries, entries, n * sizeof *entries) == 0);
        }
}

static void reads_cards(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        CardInfo *cards;
        size_t n;

        ASSERT_OK(card_info_parse(
                STR("[{\"index\":1,\"units\":7,\"mib\":7168,\"numa\":1,\"healthy\":false,\"x\":[]},"
                    "{\"uuid\":\"GPU-1\",\"model\":\"Tesla-V100\",\"units\":15,\"index\":0}]"),
                &arena, &cards, &n, NULL));
        ASSERT_INT(n, 2);
        ASSERT_INT(cards[0].index, 0);
        ASSERT_INT(cards[0].units, 15);
        ASSERT_INT(cards[0].mib, 0);
        ASSERT_INT(cards[0].numa, -1);
        ASSERT_TRUE(cards[0].healthy);
        ASSERT_STR(cards[0].uuid, STR("GPU-1"));
        ASSERT_STR(cards[0].model, STR("Tesla-V100"));
        ASSERT_INT(cards[1].index, 1);
        ASSERT_INT(cards[1].mib, 7168);
        ASSERT_INT(cards[1].numa, 1);
        ASSERT_FALSE(cards[1].healthy);
        ASSERT_OK(card_info_parse(STR("[]"), &arena, &cards, &n, NULL));
        ASSERT_INT(n, 0);
}

static void reads_peers(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        CardInfo *cards;
        size_t n;

        ASSERT_OK(card_info_parse(STR("[{\"index\":0,\"units\":1,\"peers\":[0,50,10]},"
                                      "{\"index\":1,\"units\":1,\"peers\":[]},"
                                      "{\"index\":2,\"units\":1,\"peers\":null}]"),
                                  &arena, &cards, &n, NULL));
        ASSERT_INT(n, 3);
        ASSERT_INT(cards[0].n_peers, 3);
        ASSERT_INT(cards[0].peers[1], 50);
        ASSERT_INT(cards[0].peers[2], 10);
        for (size_t i = 0; i < n; i++)
                ASSERT_FALSE(cards[i].peers_malformed);
        ASSERT_INT(cards[1].n_peers, 0);
        ASSERT_INT(cards[2].n_peers, 0);
}

/* The card stays, and only its links are lost. */
static void drops_bad_peers(void) {
        static const char *const bad[] = {"1", "\"x\"", "{}", "[\"1\"]", "[-1]", "[65536]", "[1.5]", "[[]]"};
        _cleanup_buf_ Buf many = BUF_NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        CardInfo *cards;
        size_t n;

        for (size_t i = 0; i <= ELEMENTSOF(bad); i++) {
                buf_clear(&many);
                if (i < ELEMENTSOF(bad))
                        buf_appendf(&many, "[{\"index\":3,\"units\":7,\"peers\":%s}]", bad[i]);
                else
                        buf_appendf(&many, "[{\"index\":3,\"units\":7,\"peers\":[%s1]}]",
                                    "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,");
                ASSERT_OK(card_info_parse(buf_str(&many), &arena, &cards, &n, NULL));
                ASSERT_INT(n, 1);
                ASSERT_INT(cards[0].units, 7);
                ASSERT_TRUE(cards[0].peers_malformed);
                ASSERT_INT(cards[0].n_peers, 0);
        }
}

static void refuses_bad_cards(void) {
        static const struct {
                const char *text, *fault;
        } bad[] = {
                {"", "the text ends"},
                {"{}", "not an array"},
                {"[1]", "[0]: not an object"},
                {"[null]", "[0]: not an object"},
                {"[{\"units\":1}]", "[0]: a card needs an index"},
                {"[{\"index\":-1,\"units\":1}]", "[0]: a card needs an index"},
                {"[{\"index\":256,\"units\":1}]", "[0]: a card needs an index"},
                {"[{\"index\":0}]", "[0]: a card needs its units"},
                {"[{\"index\":0,\"units\":-1}]", "[0]: a card needs its units"},
                {"[{\"index\":0,\"units\":4294967296}]", "[0]: a card needs its units"},
                {"[{\"index\":0,\"units\":1.5}]", "[0].units: not a whole number"},
                {"[{\"index\":0,\"units\":\"1\"}]", "[0].units: not a number"},
                {"[{\"index\":0,\"units\":1,\"mib\":-1}]", "[0]: the card's mib"},
                {"[{\"index\":0,\"units\":1,\"numa\":-2}]", "[0]: the card's numa"},
                {"[{\"index\":0,\"units\":1,\"healthy\":1}]", "[0].healthy: neither true nor false"},
                {"[{\"index\":0,\"units\":1},{\"index\":0,\"units\":1}]", "card 0 is listed twice"},
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                Fault fault = FAULT_NULL;
                CardInfo *cards;
                size_t n = 77;

                ASSERT_INT(card_info_parse(str_from(bad[i].text), &arena, &cards, &n, &fault),
                           CARD_INFO_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, bad[i].fault);
                ASSERT_INT(n, 77);
        }
}

static void holds_the_card_limit(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;
        CardInfo in[257], *out;
        size_t n;

        for (uint32_t i = 0; i < ELEMENTSOF(in); i++)
                in[i] = (CardInfo){.index = 255 - i % 256, .units = i, .numa = -1};
        card_info_format(in, 256, &text);
        ASSERT_OK(card_info_parse(buf_str(&text), &arena, &out, &n, NULL));
        ASSERT_INT(n, 256);
        ASSERT_INT(out[255].index, 255);
        ASSERT_INT(out[255].units, 0);
        buf_clear(&text);
        card_info_format(in, 257, &text);
        ASSERT_INT(card_info_parse(buf_str(&text), &arena, &out, &n, &fault), CARD_INFO_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "more than 256 cards");
}

static void cards_round_trip(void) {
        static const char text[] =
                "[{\"index\":0,\"uuid\":\"GPU-a\",\"model\":\"a \\\"b\\\"\",\"units\":15,\"mib\":16160,"
                "\"numa\":0,\"healthy\":true,\"peers\":[0,0,50]},{\"index\":2,\"units\":7,\"healthy\":false}"
                "]";
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf out = BUF_NULL;
        CardInfo *cards;
        size_t n;

        ASSERT_OK(card_info_parse(str_from(text), &arena, &cards, &n, NULL));
        card_info_format(cards, n, &out);
        ASSERT_STR(buf_str(&out), str_from(text));
        buf_clear(&out);
        card_info_format(NULL, 0, &out);
        ASSERT_STR(buf_str(&out), STR("[]"));
}

int main(void) {
        return TEST_MAIN(TEST(reads_the_documented_example), TEST(reads_what_schedulers_write),
                         TEST(refuses_what_contradicts_itself), TEST(holds_the_entry_limit),
                         TEST(random_allocations_round_trip), TEST(reads_cards), TEST(reads_peers),
                         TEST(drops_bad_peers), TEST(refuses_bad_cards), TEST(holds_the_card_limit),
                         TEST(cards_round_trip));
}
