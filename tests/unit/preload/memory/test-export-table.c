/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/export_table.h"
#include "test.h"

enum { CLIENT = 0x1D00001, DEVICE = 1, UNIT = 4096 };

static ExportTable exports;
static RmObjects objects;

static uint64_t sum(const FreedBytes *b, uint32_t card) {
        return b->cards[0] >> card & 1 ? b->card[0][card] : 0;
}

static void make(uint32_t handle, uint64_t bytes) {
        RmParent parent = rm_objects_parent(&objects, CLIENT, CLIENT);
        FreedBytes freed;

        freed_bytes_clear(&freed);
        parent.card = 3;
        ASSERT_OK(rm_objects_add(&objects, &parent, handle, RM_OBJECT_LEAF, bytes, 0, &freed));
}

static uint64_t drop(uint32_t handle) {
        FreedBytes freed;
        RmObjectMark mark;

        freed_bytes_clear(&freed);
        ASSERT_TRUE(rm_objects_find(&objects, CLIENT, handle, &mark));
        rm_objects_remove(&objects, &mark, &freed);
        return sum(&freed, 3);
}

static uint64_t drop_share(uint32_t charge, uint32_t units) {
        FreedBytes freed;

        freed_bytes_clear(&freed);
        rm_objects_drop_charge(&objects, charge, &(RmObject){.card = 3, .units = units}, &freed);
        return sum(&freed, 3);
}

static bool take(ExportFilter wanted, ExportedObject *ret) {
        return export_table_take(&exports, &wanted, ret);
}

static void adds_a_holder(void) {
        ExportedObject x = {.key = 77, .call = 7, .card = 3}, held;
        uint64_t calls[2] = {0, 0};
        RmObject source;

        make(10, 5 * UNIT);
        x.charge = rm_objects_ref_charge(&objects, CLIENT, 10, &source);
        x.units = source.units;
        ASSERT_OK(export_table_add(&exports, &x));
        ASSERT_INT(drop(10), 0); /* the file has it */
        export_table_find_calls(&exports, 77, 0, 2, calls);
        ASSERT_TRUE(calls[0] == EXPORT_AMBIGUOUS && calls[1] == 0); /* pending: the driver has not answered */
        export_table_confirm(&exports, 7);
        calls[0] = 0;
        export_table_find_calls(&exports, 77, 0, 2, calls);
        ASSERT_TRUE(calls[0] == 7 && calls[1] == 0);
        ASSERT_TRUE(!export_table_ref(&exports, 7, 1, &objects, &held)); /* another index */
        ASSERT_TRUE(!export_table_ref(&exports, 8, 0, &objects, &held));
        ASSERT_TRUE(export_table_ref(&exports, 7, 0, &objects, &held)); /* an import of its own export */
        ASSERT_TRUE(take((ExportFilter){.call = 7}, &held));
        ASSERT_TRUE(!take((ExportFilter){.call = 7}, &held));
        ASSERT_INT(drop_share(held.charge, held.units), 0);
        ASSERT_INT(drop_share(held.charge, held.units), 5 * UNIT);
        ASSERT_INT(exports.n, 0);
}

/* Bytes of its own, which no object of this process shares. */
static void has_bytes_of_its_own(void) {
        ExportedObject x = {.key = 5, .call = 1, .units = 9, .card = 3}, got;

        ASSERT_OK(export_table_add(&exports, &x));
        ASSERT_TRUE(!export_table_ref(&exports, 1, 0, &objects, &got));
        ASSERT_TRUE(take((ExportFilter){.key = 5, .n = 1}, &got));
        ASSERT_INT(drop_share(got.charge, got.units), 9 * UNIT);
}

/* An export that is confirmed between the sequence number and the driver's answer does not count as
 * there before. */
static void tells_later_exports_apart(void) {
        uint64_t first = export_table_next_sequence(&exports), late = export_table_next_sequence(&exports),
                 turn, calls[1] = {0};
        ExportedObject got;

        ASSERT_TRUE(first != EXPORT_PENDING && late > first);
        ASSERT_OK(export_table_add(&exports, &(ExportedObject){.key = 1, .call = first}));
        ASSERT_OK(export_table_add(&exports,
                                   &(ExportedObject){.key = 1, .call = 50, .since = EXPORT_UNLOCKED}));
        ASSERT_OK(export_table_add(&exports, &(ExportedObject){.key = 1, .call = late}));
        export_table_confirm(&exports, first);
        turn = export_table_next_sequence(&exports);
        export_table_confirm(&exports, late);
        export_table_confirm(&exports, first); /* that is known */
        export_table_confirm(&exports, 50);
        export_table_find_calls(&exports, 1, 0, 1, calls);
        ASSERT_TRUE(calls[0] == EXPORT_AMBIGUOUS); /* either of the two may be there */
        ASSERT_TRUE(!take((ExportFilter){.key = 2, .before = turn}, &got));
        ASSERT_TRUE(!take((ExportFilter){.key = 1, .before = turn, .first = 1, .n = 9}, &got));
        ASSERT_INT(export_table_replacements(&exports), 0);
        ASSERT_TRUE(take((ExportFilter){.key = 1, .before = turn, .n = 1}, &got));
        ASSERT_INT(got.call, first);
        ASSERT_INT(export_table_replacements(&exports), 1);
        ASSERT_TRUE(!take((ExportFilter){.key = 1, .before = turn, .n = 1}, &got));
        ASSERT_TRUE(take((ExportFilter){.call = late}, &got));
        ASSERT_INT(export_table_replacements(&exports), 1); /* the call was refused */
        ASSERT_TRUE(take((ExportFilter){.key = 1}, &got));
        ASSERT_INT(got.call, 50);
}

static void keeps_its_files(void) {
        ExportFile got;

        for (uint32_t i = 1; i <= 1000; i++)
                ASSERT_OK(export_table_add_file(&exports, &(ExportFile){.key = i, .ino = i}));
        ASSERT_TRUE(export_table_has_file(&exports, 1) && export_table_has_file(&exports, 1000));
        export_table_drop_file(&exports, 1);
        export_table_drop_file(&exports, 1);
        ASSERT_INT(export_table_files(&exports), 999);
        ASSERT_TRUE(!export_table_has_file(&exports, 1));
        ASSERT_TRUE(export_table_file_at(&exports, 998, &got) && !export_table_file_at(&exports, 999, &got));
        export_table_after_fork(&exports);
        ASSERT_TRUE(!export_table_file_at(&exports, 0, &got));
        ASSERT_INT(export_table_files(&exports), 0);
}

static void many(void) {
        ExportedObject got;

        for (uint32_t i = 0; i < 1000; i++)
                ASSERT_OK(export_table_add(&exports, &(ExportedObject){.key = 1 + i / 100,
                                                                       .call = 1 + i / 10,
                                                                       .since = 1,
                                                                       .index = i % 10,
                                                                       .units = i}));
        ASSERT_TRUE(take((ExportFilter){.call = 51, .first = 7, .n = 1}, &got));
        ASSERT_INT(got.units, 507);
        ASSERT_TRUE(!take((ExportFilter){.call = 51, .first = 7, .n = 1}, &got));
        for (uint32_t key = 2; key <= 10; key += 2)
                while (take((ExportFilter){.key = key}, &got))
                        ASSERT_INT(got.key, key);
        ASSERT_INT(exports.n, 500);
        export_table_after_fork(&exports);
        ASSERT_TRUE(!take((ExportFilter){.n = 0}, &got));
        ASSERT_OK(export_table_add(&exports, &(ExportedObject){.key = 1}));
        ASSERT_INT(exports.n, 1);
}

int main(void) {
        return TEST_MAIN(TEST(adds_a_holder), TEST(has_bytes_of_its_own), TEST(tells_later_exports_apart),
                         TEST(keeps_its_files), TEST(many));
}
