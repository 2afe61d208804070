/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/card.h"

#include <errno.h>

#include "gpu/rm/rm.h"
#include "random.h"
#include "test.h"

enum { KIB = 1024, MIB = 1024 * KIB };

static const MachineCard small = {.mib = 16, .model = "T", .uuid = "GPU-1"};

static uint64_t rounded(uint64_t bytes, uint32_t page, int expected) {
        uint32_t attr = page << RM_ATTR_PAGE_SHIFT | 1;
        uint64_t ret = 0;

        ASSERT_INT(sim_card_round(bytes, &attr, 0, &ret), expected);
        ASSERT_INT(attr & 1, 1);
        return ret;
}

static void rounds_like_the_driver(void) {
        ASSERT_INT(rounded(1, RM_ATTR_PAGE_DEFAULT, 0), 64 * KIB);
        ASSERT_INT(rounded(64 * KIB, RM_ATTR_PAGE_DEFAULT, 0), 64 * KIB);
        ASSERT_INT(rounded(64 * KIB + 1, RM_ATTR_PAGE_DEFAULT, 0), 128 * KIB);
        ASSERT_INT(rounded(2 * MIB - 1, RM_ATTR_PAGE_DEFAULT, 0), 2 * MIB);
        ASSERT_INT(rounded(2 * MIB - 64 * KIB, RM_ATTR_PAGE_DEFAULT, 0), 2 * MIB - 64 * KIB);
        ASSERT_INT(rounded(2 * MIB, RM_ATTR_PAGE_DEFAULT, 0), 2 * MIB);
        ASSERT_INT(rounded(2 * MIB + 1, RM_ATTR_PAGE_DEFAULT, 0), 4 * MIB);
        ASSERT_INT(rounded(1, RM_ATTR_PAGE_4KB, 0), 64 * KIB);
        ASSERT_INT(rounded(3 * MIB + 1, RM_ATTR_PAGE_4KB, 0), 3 * MIB + 64 * KIB);
        ASSERT_INT(rounded(3 * MIB + 1, RM_ATTR_PAGE_BIG, 0), 3 * MIB + 64 * KIB);
        ASSERT_INT(rounded(1, RM_ATTR_PAGE_HUGE, 0), 2 * MIB);
}

static void invalid_sizes(void) {
        uint32_t attr = RM_ATTR_PAGE_HUGE << RM_ATTR_PAGE_SHIFT;
        uint64_t ret;

        (void) rounded(UINT64_MAX, RM_ATTR_PAGE_DEFAULT, SIM_CARD_E_FULL);
        (void) rounded(UINT64_MAX, RM_ATTR_PAGE_BIG, SIM_CARD_E_FULL);
        (void) rounded((uint64_t) UINT32_MAX * 2 * MIB + 1, RM_ATTR_PAGE_DEFAULT, SIM_CARD_E_FULL);
        ASSERT_INT(rounded((uint64_t) UINT32_MAX * 2 * MIB, RM_ATTR_PAGE_DEFAULT, 0),
                   (uint64_t) UINT32_MAX * 2 * MIB);
        ASSERT_INT(sim_card_round(1, &attr, 2u << RM_ATTR2_HUGE_SHIFT, &ret), SIM_CARD_E_ATTRIBUTE);
        ASSERT_INT(sim_card_round(1, &attr, 1u << RM_ATTR2_HUGE_SHIFT, &ret), 0);
}

static SimBlock *take(SimCard *c, uint64_t bytes) {
        SimBlock *b;

        ASSERT_OK(sim_card_take(c, bytes, &b));
        return b;
}

static void allocates_exactly_the_free_bytes(void) {
        SimBlock *all, *none;
        SimCard c;

        ASSERT_OK(sim_card_init(&c, &small, 2 * MIB));
        ASSERT_INT(sim_card_free(&c), 14 * MIB);
        ASSERT_INT(sim_card_take(&c, 14 * MIB + 64 * KIB, &none), SIM_CARD_E_FULL);
        all = take(&c, 14 * MIB);
        ASSERT_INT(sim_card_free(&c), 0);
        ASSERT_INT(sim_card_largest(&c).bytes, 0);
        ASSERT_INT(sim_card_take(&c, 64 * KIB, &none), SIM_CARD_E_FULL);
        ASSERT_TRUE(!sim_block_unref(all));
        ASSERT_INT(sim_card_largest(&c).bytes, 14 * MIB);
        ASSERT_INT(sim_card_largest(&c).start, 2 * MIB);
        sim_card_done(&c);
        ASSERT_INT(sim_card_init(&c, &small, 16 * MIB + 1), -ERANGE);
}

/* Every second piece is freed: the largest hole is one piece, and an allocation of all free bytes
 * consists of pieces. */
static void free_bytes_in_pieces(void) {
        SimBlock *b[256], *rest;
        SimCard c;

        ASSERT_OK(sim_card_init(&c, &small, 0));
        for (int i = 0; i < 256; i++)
                b[i] = take(&c, 64 * KIB);
        for (int i = 0; i < 256; i += 2)
                b[i] = sim_block_unref(b[i]);
        ASSERT_INT(sim_card_free(&c), 8 * MIB);
        ASSERT_INT(sim_card_largest(&c).bytes, 64 * KIB);
        rest = take(&c, 8 * MIB);
        ASSERT_INT(rest->n, 128);
        ASSERT_INT(sim_card_free(&c), 0);
        (void) sim_block_unref(rest);
        for (int i = 1; i < 256; i += 2)
                b[i] = sim_block_unref(b[i]);
        ASSERT_INT(c.n_free, 1);
        ASSERT_INT(sim_card_largest(&c).bytes, 16 * MIB);
        sim_card_done(&c);
}

static void last_reference_frees(void) {
        SimBlock *b;
        SimCard c;

        ASSERT_OK(sim_card_init(&c, &small, 0));
        b = take(&c, 2 * MIB);
        ASSERT_TRUE(sim_block_ref(b) == b);
        (void) sim_block_unref(b);
        ASSERT_INT(c.used, 2 * MIB);
        (void) sim_block_unref(b);
        ASSERT_INT(c.used, 0);
        sim_card_done(&c);
}

static void check(const SimCard *c) {
        uint64_t sum = 0;

        for (size_t i = 0; i < c->n_free; i++) {
                sum += c->free[i].bytes;
                ASSERT_TRUE(c->free[i].bytes > 0);
                ASSERT_TRUE(i == 0 || c->free[i - 1].start + c->free[i - 1].bytes < c->free[i].start);
        }
        ASSERT_INT(sum, sim_card_free(c));
}

static void sums_hold_for_random_steps(void) {
        SimBlock *b[64] = {0};
        Random random = {1};
        SimCard c;

        ASSERT_OK(sim_card_init(&c, &small, 0));
        for (int i = 0; i < 20000; i++) {
                SimBlock **one = &b[random_below(&random, 64)];

                if (*one)
                        *one = sim_block_unref(*one);
                else
                        (void) sim_card_take(&c, (random_below(&random, 16) + 1) * 64 * KIB,
                                             one); /* a full card is a valid answer */
                check(&c);
        }
        for (int i = 0; i < 64; i++)
                b[i] = sim_block_unref(b[i]);
        ASSERT_INT(c.used, 0);
        ASSERT_INT(c.n_free, 1);
        sim_card_done(&c);
}

int main(void) {
        return TEST_MAIN(TEST(rounds_like_the_driver), TEST(invalid_sizes),
                         TEST(allocates_exactly_the_free_bytes), TEST(free_bytes_in_pieces),
                         TEST(last_reference_frees), TEST(sums_hold_for_random_steps));
}
