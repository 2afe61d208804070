/* SPDX-License-Identifier: Apache-2.0 */
#include "node/records/records.h"

#include <sys/stat.h>

#include "scratch.h"
#include "test.h"

static char directory[64], pods[96];

static void begin(void) {
        (void) snprintf(directory, sizeof directory, "/tmp/aliquot-records-XXXXXX");
        scratch_make(directory);
        (void) snprintf(pods, sizeof pods, "%s/pods", directory);
}

static void end(void) {
        scratch_remove(directory);
}

static void give(Records *r, const char *uid, const char *container, bool init, const char *id) {
        _cleanup_devices_ DeviceSet set = DEVICE_SET_NULL;
        Str text = str_from(id);

        ASSERT_OK(device_set_parse(&text, 1, DEVICE_MEM, &set, NULL));
        ASSERT_OK(records_give(r, str_from(uid), STR("d"), STR("pod"), str_from(container), init, DEVICE_MEM,
                               &set));
}

static void records_survive_a_restart(void) {
        DeviceId id = device_id(3, 7);
        DeviceSet one = {&id, 1};
        Fault fault = FAULT_NULL;
        Records r, again;
        Record *record;

        begin();
        ASSERT_OK(records_open(&r, pods, &fault));
        give(&r, "u1", "main", false, "3-7");
        give(&r, "u2", "ini", true, "0-0");
        ASSERT_OK(records_save(&r, records_find(&r, STR("u1")), &fault));
        ASSERT_FALSE(record_has_started(records_find(&r, STR("u1"))));
        record_set_started(records_find(&r, STR("u1")), STR("main"), true);
        record_set_assume(records_find(&r, STR("u1")), 1700000000000000000);
        record_set_assume(records_find(&r, STR("u1")), 1); /* a known value stays */
        ASSERT_FALSE(records_find(&r, STR("u1"))->saved);
        ASSERT_OK(records_save(&r, records_find(&r, STR("u1")), &fault));
        records_done(&r); /* u2 never started, so it was not saved */

        ASSERT_OK(records_open(&again, pods, &fault));
        record = records_find(&again, STR("u1"));
        ASSERT_TRUE(record && record->saved && records_find(&again, STR("u2")) == NULL);
        ASSERT_TEXT(record->name, "pod");
        ASSERT_TRUE(record_has_started(record));
        ASSERT_TRUE(record->assume == 1700000000000000000);
        ASSERT_INT(record_container(record, STR("main"))->given[DEVICE_MEM].ids[0], device_id(3, 7));
        ASSERT_TRUE(record_container(record, STR("main"))->started);
        ASSERT_TRUE(records_holder(&again, DEVICE_MEM, &one, STR("")) == record);
        ASSERT_TRUE(records_holder(&again, DEVICE_CORE, &one, STR("")) == NULL);
        records_drop(&again, record);
        records_done(&again);
        ASSERT_OK(records_open(&r, pods, &fault));
        ASSERT_TRUE(r.by_uid == NULL);
        records_done(&r);
        end();
}

static void write_file(const char *name, const char *text) {
        char path[160];
        FILE *f;

        (void) snprintf(path, sizeof path, "%s/%s", pods, name);
        f = fopen(path, "w");
        ASSERT_TRUE(f != NULL);
        (void) fputs(text, f);
        (void) fclose(f);
}

static void broken_files_are_set_aside(void) {
        struct stat st;
        char path[160];
        Records r;

        begin();
        ASSERT_OK(mkdir(pods, 0700));
        write_file("u1.json", "{\"uid\":\"u1\",\"contai");
        write_file("u2.json", "{\"uid\":\"u2\",\"namespace\":\"d\",\"name\":\"p\",\"containers\":[{\"name\":"
                              "\"c\",\"mem\":[\"0-0\",\"0-0\"]}]}");
        write_file("u3.json.new", "half of a text that nobody renamed");
        write_file("u4.json", "{\"uid\":\"../u4\",\"namespace\":\"d\",\"name\":\"p\",\"containers\":[]}");
        ASSERT_OK(records_open(&r, pods, NULL));
        ASSERT_TRUE(r.by_uid == NULL);
        (void) snprintf(path, sizeof path, "%s/u1.json.bad", pods);
        ASSERT_OK(stat(path, &st));
        (void) snprintf(path, sizeof path, "%s/u2.json.bad", pods);
        ASSERT_OK(stat(path, &st));
        records_done(&r);
        end();
}

static Record *parse(const char *text) {
        Fault fault = FAULT_NULL;
        Record *record = NULL;

        ASSERT_OK(record_read(str_from(text), &record, &fault));
        return record;
}

/* A reader takes the keys that it knows, and writes only those. */
static void other_keys_are_ignored(void) {
        _cleanup_(record_freep) Record *record =
                parse("{\"uid\":\"u1\",\"namespace\":\"d\",\"name\":\"p\",\"later\":{},\"containers\":[{"
                      "\"name\":\"c\",\"later\":\"x\",\"init\":false,\"started\":true,\"mem\":[\"0-0\"],"
                      "\"core\":[]}]}");
        _cleanup_buf_ Buf text = BUF_NULL;

        ASSERT_TRUE(record->containers[0].started && record->containers[0].given[DEVICE_MEM].n == 1);
        record_write(record, &text);
        ASSERT_TRUE(buf_result(&text) == 0 && strstr(text.data, "later") == NULL);
}

static void a_full_disk_loses_nothing(void) {
        Fault fault = FAULT_NULL;
        Records r;

        begin();
        ASSERT_OK(records_open(&r, pods, NULL));
        give(&r, "u1", "main", false, "3-7");
        scratch_remove(pods); /* no file can be written there now */
        ASSERT_TRUE(records_save(&r, records_find(&r, STR("u1")), &fault) < 0);
        ASSERT_CONTAINS(fault.text, "u1.json");
        ASSERT_FALSE(records_find(&r, STR("u1"))->saved);
        ASSERT_OK(mkdir(pods, 0700));
        ASSERT_OK(records_save(&r, records_find(&r, STR("u1")), &fault));
        records_done(&r);
        end();
}

static void holders_are_found(void) {
        DeviceId id = device_id(3, 7);
        DeviceSet set = {&id, 1};
        Records r;

        begin();
        ASSERT_OK(records_open(&r, pods, NULL));
        give(&r, "u1", "main", false, "3-7");
        ASSERT_TRUE(records_holder(&r, DEVICE_MEM, &set, STR("u1")) == NULL);
        ASSERT_TRUE(records_holder(&r, DEVICE_MEM, &set, STR("u2")) == records_find(&r, STR("u1")));
        ASSERT_TRUE(records_holder(&r, DEVICE_CORE, &set, STR("u2")) == NULL);
        records_done(&r);
        end();
}

static void sizes_and_permits_survive(void) {
        Records r, again;
        Record *record;
        const RecordContainer *c;

        begin();
        ASSERT_OK(records_open(&r, pods, NULL));
        give(&r, "u1", "main", false, "3-7");
        record = records_find(&r, STR("u1"));
        record_set_size(record, STR("main"), 3, 40);
        ASSERT_INT(record_mem_above(record_container(record, STR("main")), 3), 2);
        record_set_permit(record, STR("main"), 5);
        ASSERT_OK(records_save(&r, record, NULL));
        records_done(&r);
        ASSERT_OK(records_open(&again, pods, NULL));
        c = record_container(records_find(&again, STR("u1")), STR("main"));
        ASSERT_TRUE(c->size_mem == 3 && c->size_core == 40 && c->permit_mem == 5);
        ASSERT_INT(record_mem_above(c, 3), 4);
        ASSERT_INT(record_mem_above(c, 2), 0);
        give(&again, "u1", "main", false, "3-8"); /* another slice */
        ASSERT_INT(record_mem_above(c, 3), 0);
        records_done(&again);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(records_survive_a_restart), TEST(other_keys_are_ignored),
                         TEST(broken_files_are_set_aside), TEST(a_full_disk_loses_nothing),
                         TEST(holders_are_found), TEST(sizes_and_permits_survive));
}
