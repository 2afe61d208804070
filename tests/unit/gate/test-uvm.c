/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/uvm.h"
#include "test.h"

static Uvm uvm;

static uint64_t take_all(uint64_t start, uint64_t end) {
        uint64_t sum = 0;
        UvmRange part;

        while (uvm_take(&uvm, start, end, &part))
                sum += part.end - part.start;
        return sum;
}

static void takes_parts(void) {
        ASSERT_OK(uvm_add(&uvm, 100, 200, 3));
        ASSERT_INT(take_all(0, 100), 0);
        ASSERT_INT(take_all(200, 300), 0);
        ASSERT_INT(take_all(140, 160), 20); /* two are left */
        ASSERT_INT(take_all(140, 160), 0);
        ASSERT_INT(take_all(0, 110), 10);
        ASSERT_INT(take_all(190, UINT64_MAX), 10);
        ASSERT_INT(take_all(0, UINT64_MAX), 60);
        ASSERT_INT(uvm.n, 0);
}

static void many(void) {
        UvmRange part;

        for (uint64_t i = 0; i < 1000; i++)
                ASSERT_OK(uvm_add(&uvm, i * 10, i * 10 + 5, (uint32_t) (i % 7)));
        ASSERT_TRUE(uvm_take(&uvm, 123, 124, &part));
        ASSERT_INT(part.card, 12 % 7);
        ASSERT_INT(take_all(0, 10000), 4999);
        ASSERT_INT(uvm.n, 0);
}

int main(void) {
        return TEST_MAIN(TEST(takes_parts), TEST(many));
}
