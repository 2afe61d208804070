/* SPDX-License-Identifier: Apache-2.0 */

/* More slices with another size than the annotation of the node has entries. */

#include "node/allocate/slice_growth.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "scratch.h"
#include "share/growth.h"

static char directory[64];
static Roster roster;
static Records records;
static Inventory inventory;
static SliceGrowth growth = {.enabled = true};
static const NodeContext node = {
        .roster = &roster, .records = &records, .inventory = &inventory, .growth = &growth};

static const char pod_text[] =
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"u\",\"annotations\":{"
        "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":2}}\"}},"
        "\"spec\":{\"nodeName\":\"n\",\"containers\":["
        "{\"name\":\"main\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"2\"}}}]}}";

/* One pod, in force above its limit. */
static void begin(void) {
        DeviceId ids[] = {device_id(0, 0), device_id(0, 1)};
        Fault fault = FAULT_NULL;
        char path[96];

        (void) snprintf(directory, sizeof directory, "/tmp/aliquot-growth-XXXXXX");
        scratch_make(directory);
        (void) snprintf(path, sizeof path, "%s/pods", directory);
        ASSERT_OK(records_open(&records, path, &fault));
        ASSERT_OK(roster_init(&roster, "n"));
        roster_list_begin(&roster);
        ASSERT_OK(roster_pod(&roster, REFLECTOR_LISTED, str_from(pod_text)));
        roster_list_end(&roster);
        ASSERT_OK(records_give(&records, STR("u"), STR("d"), STR("p"), STR("main"), false, DEVICE_MEM,
                               &(DeviceSet){ids, 2}));
        record_set_size(records_find(&records, STR("u")), STR("main"), 3, 0);
}

static void end(void) {
        slice_growth_done(&growth);
        records_done(&records);
        roster_done(&roster);
        scratch_remove(directory);
}

/* The annotation has n entries of other pods. */
static void see(size_t n) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Growth g = {.serial = 1};
        bool changed;

        for (uint32_t i = 0; i < n; i++)
                ASSERT_OK(growth_raise(&g, &arena,
                                       &(GrowthEntry){.uid = STR("x"), .container = i, .size = {.mem = 1}}));
        growth_write(&g, &text);
        ASSERT_OK(slice_growth_observe(&growth, buf_str(&text), &changed));
}

/* What it logs goes into a file. */
static int plan(char *ret_log, size_t size) {
        int before = dup(STDERR_FILENO), r;
        FILE *log = tmpfile();
        _cleanup_buf_ Buf text = BUF_NULL;
        bool waits;

        ASSERT_TRUE(before >= 0 && log && dup2(fileno(log), STDERR_FILENO) >= 0);
        r = slice_growth_plan(&growth, &node, 1, &text, &waits);
        ASSERT_TRUE(dup2(before, STDERR_FILENO) >= 0);
        ASSERT_OK(close(before));
        rewind(log);
        ret_log[fread(ret_log, 1, size - 1, log)] = '\0';
        ASSERT_OK(fclose(log));
        return r;
}

static void too_many_entries_are_logged_once(void) {
        char log[1024];

        begin();
        for (int i = 0; i < 2; i++) {
                see(GROWTH_MAX);
                ASSERT_INT(plan(log, sizeof log), -E2BIG);
                ASSERT_CONTAINS(log, "node n: annotation aliquot.dev/grown-slices needs 1025 entries and has "
                                     "1024 at most");
                ASSERT_INT(plan(log, sizeof log), -E2BIG);
                ASSERT_TEXT(log, "");
                see(GROWTH_MAX - 1);
                ASSERT_INT(plan(log, sizeof log), 1);
                ASSERT_TEXT(log, "");
        }
        end();
}

int main(void) {
        return TEST_MAIN(TEST(too_many_entries_are_logged_once));
}
