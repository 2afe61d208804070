/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "preload/memory/uvm.h"
#include "test.h"

static Uvm uvm;

static uint64_t take_all(uint64_t start, uint64_t end) {
        uint64_t sum = 0;
        UvmRange part;

        while (uvm_take(&uvm, start, end, uvm_now(&uvm), &part))
                sum += part.end - part.start;
        return sum;
}

static void takes_parts(void) {
        ASSERT_OK(uvm_add(&uvm, 100, 200, 8, true));
        ASSERT_INT(take_all(0, 100), 0);
        ASSERT_INT(take_all(200, 300), 0);
        ASSERT_INT(take_all(140, 160), 20); /* two are left */
        ASSERT_INT(take_all(140, 160), 0);
        ASSERT_INT(take_all(0, 110), 10);
        ASSERT_INT(take_all(190, UINT64_MAX), 10);
        ASSERT_INT(take_all(0, UINT64_MAX), 60);
        ASSERT_INT(uvm.n, 0);
}

/* A range that is younger than the serial stays, also at the same addresses. */
static void takes_no_younger_range(void) {
        uint32_t now;
        UvmRange part;

        ASSERT_OK(uvm_add(&uvm, 100, 200, 1, true));
        now = uvm_now(&uvm);
        ASSERT_OK(uvm_add(&uvm, 100, 200, 2, true));
        ASSERT_TRUE(uvm_take(&uvm, 150, 200, now, &part));
        ASSERT_INT(part.cards, 1);
        ASSERT_FALSE(uvm_take(&uvm, 150, 200, now, &part));
        ASSERT_INT(take_all(0, 1000), 150);
}

/* The bytes by card that would be taken; nothing is taken. */
static void sums_charged_bytes(void) {
        uint32_t now;
        UvmBytes bytes;

        ASSERT_OK(uvm_add(&uvm, 100, 200, 1 << 5, true));
        ASSERT_OK(uvm_add(&uvm, 300, 400, 1 << 5, true));
        ASSERT_OK(uvm_add(&uvm, 400, 500, 1 << 3, true));
        now = uvm_now(&uvm);
        ASSERT_OK(uvm_add(&uvm, 200, 300, 1 << 5, true)); /* came later */
        uvm_charged(&uvm, 150, 450, now, &bytes);
        ASSERT_INT(bytes.cards, 1 << 5 | 1 << 3);
        ASSERT_INT(uvm_bytes_on(&bytes, 5), 150);
        ASSERT_INT(uvm_bytes_on(&bytes, 3), 50);
        ASSERT_INT(uvm_bytes_on(&bytes, 0), 0);
        uvm_charged(&uvm, 200, 300, now, &bytes);
        ASSERT_INT(bytes.cards, 0);
        ASSERT_INT(take_all(0, 1000), 400);
}

static void many(void) {
        UvmRange part;

        for (uint64_t i = 0; i < 1000; i++)
                ASSERT_OK(uvm_add(&uvm, i * 10, i * 10 + 5, 1u << i % 7, true));
        ASSERT_TRUE(uvm_take(&uvm, 123, 124, uvm_now(&uvm), &part));
        ASSERT_INT(part.cards, 1u << 12 % 7);
        ASSERT_INT(take_all(0, 10000), 4999);
        ASSERT_INT(uvm.n, 0);
}

/* Charged on every registered card, and on a guessed one only until a card is registered. */
static void charges_registered_cards(void) {
        UvmBytes freed;
        UvmRange part;

        ASSERT_OK(uvm_add(&uvm, 0, 100, 1 << 5, true));
        ASSERT_INT(uvm_lacks(&uvm, 2), 100);
        ASSERT_INT(uvm_lacks(&uvm, 5), 0);
        ASSERT_TRUE(!uvm_register(&uvm, 2, 99, &freed)); /* another thread mapped a range meanwhile */
        ASSERT_TRUE(uvm_register(&uvm, 2, 100, &freed));
        ASSERT_INT(freed.cards, 1 << 5);
        ASSERT_INT(freed.card[5], 100);
        ASSERT_INT(uvm_add(&uvm, 100, 200, 1 << 5, true), -EAGAIN);
        ASSERT_INT(uvm_add(&uvm, 100, 200, 1 << 5, false), -EAGAIN);
        ASSERT_OK(uvm_add(&uvm, 100, 200, 1 << 2, false));
        ASSERT_TRUE(uvm_register(&uvm, 3, 200, &freed));
        ASSERT_INT(freed.cards, 0);
        ASSERT_TRUE(uvm_register(&uvm, 3, 0, &freed)); /* by another file */
        ASSERT_TRUE(uvm_take(&uvm, 50, 60, uvm_now(&uvm), &part));
        ASSERT_INT(part.cards, 1 << 2 | 1 << 3);
        ASSERT_INT(uvm_unregister(&uvm, 3), 0);
        ASSERT_INT(uvm_unregister(&uvm, 3), 190);
        ASSERT_INT(uvm_unregister(&uvm, 3), 0); /* of no range */
        ASSERT_INT(uvm.cards, 1 << 2);
        ASSERT_INT(uvm_unregister(&uvm, 2), 190);
        ASSERT_INT(take_all(0, 1000), 190);
}

/* The guessed card is also the first that is registered. */
static void guessed_card_is_registered(void) {
        UvmBytes freed;

        ASSERT_OK(uvm_add(&uvm, 0, 100, 1 << 2, true));
        ASSERT_TRUE(uvm_register(&uvm, 2, 0, &freed));
        ASSERT_INT(freed.cards, 0);
        ASSERT_INT(uvm_unregister(&uvm, 2), 100);
        ASSERT_INT(take_all(0, 1000), 100);
}

int main(void) {
        return TEST_MAIN(TEST(takes_parts), TEST(takes_no_younger_range), TEST(sums_charged_bytes),
                         TEST(many), TEST(charges_registered_cards), TEST(guessed_card_is_registered));
}
