/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/exports.h"
#include "test.h"

enum { CLIENT = 0x1D00001, DEVICE = 1, UNIT = 4096 };

static Exports exports;
static Objects objects;

static uint64_t sum(const ObjectBytes *b, uint32_t card) {
        return b->cards[0] >> card & 1 ? b->card[0][card] : 0;
}

static void make(uint32_t handle, uint64_t bytes) {
        ObjectSeat seat = objects_seat(&objects, CLIENT, CLIENT);
        ObjectBytes freed;

        object_bytes_none(&freed);
        seat.card = 3;
        ASSERT_OK(objects_add(&objects, &seat, handle, OBJECT_LEAF, bytes, 0, &freed));
}

static uint64_t drop(uint32_t handle) {
        ObjectBytes freed;
        ObjectMark mark;

        object_bytes_none(&freed);
        ASSERT_TRUE(objects_find(&objects, CLIENT, handle, &mark));
        objects_forget(&objects, &mark, &freed);
        return sum(&freed, 3);
}

static uint64_t drop_share(uint32_t share, uint32_t units) {
        ObjectBytes freed;

        object_bytes_none(&freed);
        objects_drop_share(&objects, share, &(Object){.card = 3, .units = units}, &freed);
        return sum(&freed, 3);
}

static void is_one_more_holder(void) {
        Export x = {.key = 77, .card = 3, .since = EXPORT_ASKED}, held;
        Object source;

        make(10, 5 * UNIT);
        x.share = objects_share(&objects, CLIENT, 10, &source);
        x.units = source.units;
        ASSERT_OK(exports_add(&exports, &x));
        ASSERT_INT(drop(10), 0); /* the file has it */
        exports_confirm(&exports, 77, 1, 2);
        ASSERT_TRUE(exports_at(&exports, 0, &held));
        ASSERT_TRUE(export_is_there(&held));
        ASSERT_INT(held.ino, 2);
        ASSERT_TRUE(!exports_ref(&exports, 77, 1, &objects, &held)); /* another place */
        ASSERT_TRUE(!exports_ref(&exports, 78, 0, &objects, &held));
        ASSERT_TRUE(exports_ref(&exports, 77, 0, &objects, &held)); /* an import of our own */
        ASSERT_TRUE(exports_take(&exports, 77, EXPORTS_ANY, &held));
        ASSERT_TRUE(!exports_take(&exports, 77, EXPORTS_ANY, &held));
        ASSERT_INT(drop_share(held.share, held.units), 0);
        ASSERT_INT(drop_share(held.share, held.units), 5 * UNIT);
        ASSERT_INT(exports.n, 0);
}

/* Bytes of its own, which no object of ours shares. */
static void has_bytes_of_its_own(void) {
        Export x = {.key = 5, .units = 9, .card = 3}, got;

        ASSERT_OK(exports_add(&exports, &x));
        ASSERT_TRUE(!exports_ref(&exports, 5, 0, &objects, &got));
        ASSERT_TRUE(exports_take(&exports, 5, 0, &got));
        ASSERT_INT(drop_share(got.share, got.units), 9 * UNIT);
}

/* What came to be there while one asks for the turn and the driver is not what was there before. */
static void knows_what_came_later(void) {
        Export got;
        uint64_t turn;

        ASSERT_OK(exports_add(&exports, &(Export){.key = 1, .since = EXPORT_ASKED}));
        ASSERT_OK(exports_add(&exports, &(Export){.key = 2, .since = EXPORT_UNSEEN}));
        ASSERT_OK(exports_add(&exports, &(Export){.key = 3, .since = EXPORT_ASKED}));
        exports_confirm(&exports, 1, 1, 1);
        turn = exports_turn(&exports);
        exports_confirm(&exports, 3, 1, 1);
        exports_confirm(&exports, 1, 1, 1); /* that is known */
        exports_confirm(&exports, 2, 1, 1);
        ASSERT_TRUE(exports_take(&exports, 1, EXPORTS_ANY, &got));
        ASSERT_TRUE(export_is_there(&got) && got.since < turn);
        ASSERT_TRUE(!exports_have(&exports, 1));
        ASSERT_TRUE(exports_have(&exports, 3));
        ASSERT_TRUE(exports_take(&exports, 3, EXPORTS_ANY, &got));
        ASSERT_TRUE(export_is_there(&got) && got.since > turn);
        ASSERT_TRUE(exports_take(&exports, 2, EXPORTS_ANY, &got));
        ASSERT_TRUE(!export_is_there(&got));
}

static void many(void) {
        Export got;

        for (uint32_t i = 0; i < 1000; i++)
                ASSERT_OK(exports_add(&exports, &(Export){.key = i / 10, .place = i % 10, .units = i}));
        ASSERT_TRUE(exports_take(&exports, 50, 7, &got));
        ASSERT_INT(got.units, 507);
        ASSERT_TRUE(!exports_take(&exports, 50, 7, &got));
        for (uint32_t i = 1000; i-- > 0;) /* from the last on, as one goes through them */
                if (exports_at(&exports, i, &got) && got.key % 2 == 0)
                        ASSERT_TRUE(exports_take(&exports, got.key, got.place, &got));
        ASSERT_INT(exports.n, 500);
        for (uint32_t i = 0; exports_at(&exports, i, &got); i++)
                ASSERT_INT(got.key % 2, 1);
        exports_after_fork(&exports);
        ASSERT_TRUE(!exports_at(&exports, 0, &got));
        ASSERT_OK(exports_add(&exports, &(Export){.key = 1}));
        ASSERT_INT(exports.n, 1);
}

int main(void) {
        return TEST_MAIN(TEST(is_one_more_holder), TEST(has_bytes_of_its_own), TEST(knows_what_came_later),
                         TEST(many));
}
