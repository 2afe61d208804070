/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/exports.h"
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

static bool take(ExportsWanted wanted, Export *ret) {
        return exports_take(&exports, &wanted, ret);
}

static void is_one_more_holder(void) {
        Export x = {.key = 77, .call = 7, .card = 3}, held;
        uint64_t calls[2] = {0, 0};
        Object source;

        make(10, 5 * UNIT);
        x.share = objects_share(&objects, CLIENT, 10, &source);
        x.units = source.units;
        ASSERT_OK(exports_add(&exports, &x));
        ASSERT_INT(drop(10), 0); /* the file has it */
        exports_look(&exports, 77, 0, 2, calls);
        ASSERT_TRUE(calls[0] == EXPORTS_UNSURE && calls[1] == 0); /* the driver is being asked */
        exports_confirm(&exports, 7);
        calls[0] = 0;
        exports_look(&exports, 77, 0, 2, calls);
        ASSERT_TRUE(calls[0] == 7 && calls[1] == 0);
        ASSERT_TRUE(!exports_ref(&exports, 7, 1, &objects, &held)); /* another place */
        ASSERT_TRUE(!exports_ref(&exports, 8, 0, &objects, &held));
        ASSERT_TRUE(exports_ref(&exports, 7, 0, &objects, &held)); /* an import of our own */
        ASSERT_TRUE(take((ExportsWanted){.call = 7}, &held));
        ASSERT_TRUE(!take((ExportsWanted){.call = 7}, &held));
        ASSERT_INT(drop_share(held.share, held.units), 0);
        ASSERT_INT(drop_share(held.share, held.units), 5 * UNIT);
        ASSERT_INT(exports.n, 0);
}

/* Bytes of its own, which no object of ours shares. */
static void has_bytes_of_its_own(void) {
        Export x = {.key = 5, .call = 1, .units = 9, .card = 3}, got;

        ASSERT_OK(exports_add(&exports, &x));
        ASSERT_TRUE(!exports_ref(&exports, 1, 0, &objects, &got));
        ASSERT_TRUE(take((ExportsWanted){.key = 5, .n = 1}, &got));
        ASSERT_INT(drop_share(got.share, got.units), 9 * UNIT);
}

/* What came to be there while one asks for the turn and the driver is not what was there before. */
static void knows_what_came_later(void) {
        uint64_t first = exports_turn(&exports), late = exports_turn(&exports), turn, calls[1] = {0};
        Export got;

        ASSERT_TRUE(first != EXPORT_ASKED && late > first);
        ASSERT_OK(exports_add(&exports, &(Export){.key = 1, .call = first}));
        ASSERT_OK(exports_add(&exports, &(Export){.key = 1, .call = 50, .since = EXPORT_UNSEEN}));
        ASSERT_OK(exports_add(&exports, &(Export){.key = 1, .call = late}));
        exports_confirm(&exports, first);
        turn = exports_turn(&exports);
        exports_confirm(&exports, late);
        exports_confirm(&exports, first); /* that is known */
        exports_confirm(&exports, 50);
        exports_look(&exports, 1, 0, 1, calls);
        ASSERT_TRUE(calls[0] == EXPORTS_UNSURE); /* either may be there */
        ASSERT_TRUE(!take((ExportsWanted){.key = 2, .before = turn}, &got));
        ASSERT_TRUE(!take((ExportsWanted){.key = 1, .before = turn, .first = 1, .n = 9}, &got));
        ASSERT_INT(exports_replaced(&exports), 0);
        ASSERT_TRUE(take((ExportsWanted){.key = 1, .before = turn, .n = 1}, &got));
        ASSERT_INT(got.call, first);
        ASSERT_INT(exports_replaced(&exports), 1);
        ASSERT_TRUE(!take((ExportsWanted){.key = 1, .before = turn, .n = 1}, &got));
        ASSERT_TRUE(take((ExportsWanted){.call = late}, &got));
        ASSERT_INT(exports_replaced(&exports), 1); /* that was refused */
        ASSERT_TRUE(take((ExportsWanted){.key = 1}, &got));
        ASSERT_INT(got.call, 50);
}

static void knows_its_files(void) {
        ExportFile got;

        for (uint32_t i = 1; i <= 1000; i++)
                ASSERT_OK(exports_add_file(&exports, &(ExportFile){.key = i, .ino = i}));
        ASSERT_TRUE(exports_have_file(&exports, 1) && exports_have_file(&exports, 1000));
        exports_drop_file(&exports, 1);
        exports_drop_file(&exports, 1);
        ASSERT_INT(exports_files(&exports), 999);
        ASSERT_TRUE(!exports_have_file(&exports, 1));
        ASSERT_TRUE(exports_file_at(&exports, 998, &got) && !exports_file_at(&exports, 999, &got));
        exports_after_fork(&exports);
        ASSERT_TRUE(!exports_file_at(&exports, 0, &got));
        ASSERT_INT(exports_files(&exports), 0);
}

static void many(void) {
        Export got;

        for (uint32_t i = 0; i < 1000; i++)
                ASSERT_OK(exports_add(&exports, &(Export){.key = 1 + i / 100,
                                                          .call = 1 + i / 10,
                                                          .since = 1,
                                                          .place = i % 10,
                                                          .units = i}));
        ASSERT_TRUE(take((ExportsWanted){.call = 51, .first = 7, .n = 1}, &got));
        ASSERT_INT(got.units, 507);
        ASSERT_TRUE(!take((ExportsWanted){.call = 51, .first = 7, .n = 1}, &got));
        for (uint32_t key = 2; key <= 10; key += 2)
                while (take((ExportsWanted){.key = key}, &got))
                        ASSERT_INT(got.key, key);
        ASSERT_INT(exports.n, 500);
        exports_after_fork(&exports);
        ASSERT_TRUE(!take((ExportsWanted){.n = 0}, &got));
        ASSERT_OK(exports_add(&exports, &(Export){.key = 1}));
        ASSERT_INT(exports.n, 1);
}

int main(void) {
        return TEST_MAIN(TEST(is_one_more_holder), TEST(has_bytes_of_its_own), TEST(knows_what_came_later),
                         TEST(knows_its_files), TEST(many));
}
