/* SPDX-License-Identifier: Apache-2.0 */

/* The best set of cards, compared with an oracle that looks at every set of every size. */

#include "share/card_set.h"

#include "random.h"
#include "test.h"

static Random random_state = {7};

static uint32_t pick(uint32_t below) {
        return random_below(&random_state, below);
}

/* ---- shapes ---- */

static CardLinks *make(uint32_t n, const uint16_t rates[][CARD_LINKS_MAX], const int32_t *numa) {
        uint16_t peers[CARD_LINKS_MAX][CARD_LINKS_MAX];
        CardInfo cards[CARD_LINKS_MAX];
        CardLinks *links;

        for (uint32_t i = 0; i < n; i++) {
                for (uint32_t k = 0; k < n; k++)
                        peers[i][k] = rates[i][k];
                cards[i] = (CardInfo){.index = i, .numa = numa[i], .peers = peers[i], .n_peers = n};
        }
        ASSERT_OK(card_links_from_info(cards, n, &links));
        return links;
}

/* Few different rates, so that sets are often alike. NULL: the shape says nothing. */
static CardLinks *random_links(uint32_t n, uint32_t kinds) {
        static const uint16_t kind[] = {10, 50, 25, 5, 300, 0};
        uint16_t rates[CARD_LINKS_MAX][CARD_LINKS_MAX] = {{0}};
        int32_t numa[CARD_LINKS_MAX];

        for (uint32_t i = 0; i < n; i++) {
                numa[i] = (int32_t) pick(2);
                for (uint32_t k = 0; k < i; k++)
                        rates[i][k] = rates[k][i] = kind[pick(kinds)];
        }
        return make(n, (const uint16_t(*)[CARD_LINKS_MAX]) rates, numa);
}

/* ---- the oracle ---- */

typedef struct Verdict {
        uint32_t slowest, sum, left_slowest, left_sum, one_node;
} Verdict;

static void judge_pairs(const CardLinks *l, uint32_t set, uint32_t *slowest, uint32_t *sum) {
        *slowest = UINT16_MAX;
        *sum = 0;
        for (uint32_t a = 0; a < l->key.n; a++)
                for (uint32_t b = a + 1; b < l->key.n; b++)
                        if (set >> a & 1 && set >> b & 1) {
                                *sum += l->key.rate[a][b];
                                *slowest = l->key.rate[a][b] < *slowest ? l->key.rate[a][b] : *slowest;
                        }
}

static Verdict judge(const CardLinks *l, uint32_t set, uint32_t may, unsigned k_next) {
        Verdict v = {.one_node = 1};
        int32_t numa = -2;

        judge_pairs(l, set, &v.slowest, &v.sum);
        for (uint32_t rest = 1; rest < UINT32_C(1) << l->key.n; rest++) {
                uint32_t slowest, sum;

                if ((rest & ~(may & ~set)) != 0 || (unsigned) __builtin_popcount(rest) != k_next)
                        continue;
                judge_pairs(l, rest, &slowest, &sum);
                if (slowest > v.left_slowest || (slowest == v.left_slowest && sum > v.left_sum)) {
                        v.left_slowest = slowest;
                        v.left_sum = sum;
                }
        }
        for (uint32_t i = 0; i < l->key.n; i++)
                if (set >> i & 1) {
                        v.one_node &= numa == -2 || numa == l->key.numa[i];
                        numa = l->key.numa[i];
                }
        return v;
}

static int compare(const Verdict *a, const Verdict *b) {
        const uint32_t x[] = {a->slowest, a->sum, a->left_slowest, a->left_sum, a->one_node},
                       y[] = {b->slowest, b->sum, b->left_slowest, b->left_sum, b->one_node};

        for (size_t i = 0; i < ELEMENTSOF(x); i++)
                if (x[i] != y[i])
                        return x[i] > y[i] ? 1 : -1;
        return 0;
}

/* Whether the sorted indexes of a come first. */
static bool comes_first(uint32_t a, uint32_t b) {
        for (unsigned i = 0; i < 32; i++)
                if ((a >> i & 1) != (b >> i & 1))
                        return a >> i & 1;
        return false;
}

static uint32_t oracle(const CardLinks *l, uint32_t must, uint32_t may, unsigned k) {
        unsigned all = k + (unsigned) __builtin_popcount(must);
        Verdict best = {0};
        uint32_t found = 0;

        for (uint32_t set = 1; set < UINT32_C(1) << l->key.n; set++) {
                Verdict v;
                int order;

                if ((set & ~may) != 0 || (unsigned) __builtin_popcount(set) != k)
                        continue;
                v = judge(l, set | must, may, all);
                order = found == 0 ? 1 : compare(&v, &best);
                if (order > 0 || (order == 0 && comes_first(set, found))) {
                        found = set;
                        best = v;
                }
        }
        return found;
}

/* ---- tests ---- */

static void random_part(uint32_t n, uint32_t *must, uint32_t *may) {
        *may = pick(UINT32_C(1) << n) | UINT32_C(1) << pick(n);
        *must = pick(3) == 0 ? pick(UINT32_C(1) << n) & ~*may : 0;
}

static void is_the_oracles_choice(void) {
        for (unsigned round = 0; round < 400; round++) {
                uint32_t n = 2 + pick(round % 10 == 0 ? 9 : 6), must, may;
                CardLinks *table = NULL, *links = random_links(n, 2 + pick(5));

                if (!links)
                        continue;
                links = card_set_intern(&table, links);
                for (unsigned i = 0; i < 20; i++) {
                        unsigned k;

                        random_part(n, &must, &may);
                        k = 1 + pick((uint32_t) __builtin_popcount(may));
                        ASSERT_INT(card_set_choose(links, must, may, k), oracle(links, must, may, k));
                }
                (void) card_links_unref(links);
                ASSERT_TRUE(!table);
        }
}

/* The table of up to eight cards answers as the search does. */
static void the_table_is_the_search(void) {
        for (unsigned round = 0; round < 20; round++) {
                CardLinks *table = NULL, *searched = random_links(8, 3), *interned;

                ASSERT_TRUE(searched != NULL);
                interned = calloc(1, sizeof *interned);
                ASSERT_TRUE(interned != NULL);
                interned->key = searched->key;
                interned->references = 1;
                interned = card_set_intern(&table, interned);
                for (uint32_t may = 1; may < 256; may++)
                        for (unsigned k = 1; k <= (unsigned) __builtin_popcount(may); k++)
                                ASSERT_INT(card_set_choose(interned, 0, may, k),
                                           card_set_choose(searched, 0, may, k));
                (void) card_links_unref(interned);
                (void) card_links_unref(searched);
        }
}

/* Of 16 cards the value is the best; of more cards the set has the size and is of those allowed. */
static void many_cards(void) {
        for (unsigned round = 0; round < 30; round++) {
                CardLinks *links = random_links(round % 2 ? 16 : 32, 2 + pick(5));
                uint32_t may = links->key.n == 16 ? 0xffff : UINT32_MAX, set;
                unsigned k = 2 + pick(links->key.n == 16 ? 2 : 12);

                set = card_set_choose(links, 0, may, k);
                ASSERT_INT(__builtin_popcount(set), k);
                for (uint32_t other = 1; links->key.n == 16 && other <= may; other++)
                        if ((unsigned) __builtin_popcount(other) == k)
                                ASSERT_TRUE(card_set_value(links, set) >= card_set_value(links, other));
                set = card_set_choose(links, 1, may & ~UINT32_C(1), k);
                ASSERT_INT(__builtin_popcount(set), k);
                ASSERT_INT(set & 1, 0);
                (void) card_links_unref(links);
        }
}

/* DGX-1 with V100: two rings of four cards. Four cards are one ring, and a second pod gets the
 * other. */
static void islands_stay_whole(void) {
        uint16_t rates[CARD_LINKS_MAX][CARD_LINKS_MAX] = {{0}};
        int32_t numa[8];
        CardLinks *links;

        for (uint32_t a = 0; a < 8; a++) {
                numa[a] = -1;
                for (uint32_t b = 0; b < 8; b++)
                        if (a != b)
                                rates[a][b] = a % 2 == b % 2 ? 50 : 10; /* even and odd cards */
        }
        links = make(8, (const uint16_t(*)[CARD_LINKS_MAX]) rates, numa);
        ASSERT_INT(card_set_choose(links, 0, 0xff, 4), 0x55);
        ASSERT_INT(card_set_choose(links, 0, 0xaa, 4), 0xaa);
        ASSERT_INT(card_set_choose(links, 0, 0xff, 2), 0x05);
        /* card 0 is taken: the two of the odd ring's four leave a pair in each ring */
        ASSERT_INT(card_set_choose(links, 0, 0xfe, 2), 0x0a);
        ASSERT_INT(card_set_choose(links, 0x01, 0xfe, 1), 0x04);
        (void) card_links_unref(links);
}

static void shapes_that_say_nothing(void) {
        uint16_t rates[CARD_LINKS_MAX][CARD_LINKS_MAX] = {{0, 50}, {50, 0}};
        static const CardInfo alike[] = {{.index = 0, .numa = 1}, {.index = 5, .numa = 1}};
        static const CardInfo far[] = {{.index = 0, .numa = 0}, {.index = 32, .numa = 1}};
        static const CardInfo apart[] = {{.index = 0, .numa = 0}, {.index = 31, .numa = 1}};
        const int32_t numa[] = {0, 0};
        CardLinks *links;

        ASSERT_TRUE(!make(2, (const uint16_t(*)[CARD_LINKS_MAX]) rates, numa));
        ASSERT_OK(card_links_from_info(alike, 2, &links));
        ASSERT_TRUE(!links);
        ASSERT_OK(card_links_from_info(far, 2, &links));
        ASSERT_TRUE(!links);
        ASSERT_OK(card_links_from_info(NULL, 0, &links));
        ASSERT_TRUE(!links);
        ASSERT_OK(card_links_from_info(apart, 2, &links));
        ASSERT_TRUE(links != NULL);
        ASSERT_INT(links->key.n, 32);
        (void) card_links_unref(links);
}

/* The slower of what two cards say of their pair; a card that says nothing is worth 0. */
static void both_cards_must_say_it(void) {
        static const uint16_t first[] = {0, 50, 7}, second[] = {20};
        static const CardInfo cards[] = {{.index = 0, .numa = -1, .peers = first, .n_peers = 3},
                                         {.index = 1, .numa = -1, .peers = second, .n_peers = 1},
                                         {.index = 2, .numa = -1}};
        CardLinks *links;

        ASSERT_OK(card_links_from_info(cards, 3, &links));
        ASSERT_INT(links->key.rate[0][1], 20);
        ASSERT_INT(links->key.rate[1][0], 20);
        ASSERT_INT(links->key.rate[0][2], 0);
        (void) card_links_unref(links);
}

static void nodes_of_one_shape_share_it(void) {
        static const CardInfo cards[] = {{.index = 0, .numa = 0}, {.index = 1, .numa = 1}};
        CardLinks *table = NULL, *a, *b;

        ASSERT_OK(card_links_from_info(cards, 2, &a));
        ASSERT_OK(card_links_from_info(cards, 2, &b));
        a = card_set_intern(&table, a);
        b = card_set_intern(&table, b);
        ASSERT_TRUE(a == b && a == card_set_intern(&table, a));
        ASSERT_INT(a->references, 2);
        (void) card_links_unref(a);
        (void) card_links_unref(b);
        ASSERT_TRUE(!table);
}

int main(void) {
        return TEST_MAIN(TEST(is_the_oracles_choice), TEST(the_table_is_the_search), TEST(many_cards),
                         TEST(islands_stay_whole), TEST(shapes_that_say_nothing),
                         TEST(both_cards_must_say_it), TEST(nodes_of_one_shape_share_it));
}
