/* SPDX-License-Identifier: Apache-2.0 */

/* A record that is lost and made again: the size in force is that of the slice's pages. */

#include "node/allocate/evidence.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "gpu/cards/simulated_cards.h"
#include "scratch.h"

enum { LIMIT = 8, OTHER = 2 };

static char directory[64];
static Roster roster;
static Records records;
static Inventory inventory;
static Isolation isolation;
static const NodeContext node = {
        .roster = &roster, .records = &records, .inventory = &inventory, .isolation = &isolation};

static const char pod_text[] =
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"u\",\"annotations\":{"
        "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":8},\\\"1\\\":{\\\"0\\\":2}}\"}},"
        "\"spec\":{\"nodeName\":\"n\",\"containers\":["
        "{\"name\":\"main\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\","
        "\"aliyun.com/gpu-core.percentage\":\"30\"}}},"
        "{\"name\":\"other\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"2\","
        "\"aliyun.com/gpu-core.percentage\":\"10\"}}}]}}";

static void write_file(const char *name, const char *text, char ret_path[static 96]) {
        int fd;

        (void) snprintf(ret_path, 96, "%s/%s", directory, name);
        fd = open(ret_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        ASSERT_INT(write(fd, text, strlen(text)), strlen(text));
        ASSERT_OK(close(fd));
}

static void begin_isolation(void) {
        char slices[96], gate[96];

        write_file("given.so", "gate", gate);
        (void) snprintf(slices, sizeof slices, "%s/slices", directory);
        ASSERT_OK(isolation_init(
                &isolation, &(IsolationOptions){.slices = slices, .state_dir = directory, .library = gate}));
        ASSERT_TEXT(isolation.unavailable.text, "");
}

/* cards: as cards_simulate() has them. */
static void begin(const char *cards, MemoryUnit unit) {
        CardList list = {0};
        Fault fault = FAULT_NULL;
        char path[96];

        (void) snprintf(directory, sizeof directory, "/tmp/aliquot-evidence-XXXXXX");
        scratch_make(directory);
        (void) snprintf(path, sizeof path, "%s/pods", directory);
        ASSERT_OK(records_open(&records, path, &fault));
        ASSERT_OK(cards_simulate(str_from(cards), STR("n"), &list, &fault));
        ASSERT_OK(inventory_set(&inventory, &list, SHARE_MODE_CORE_MEM, unit));
        card_list_done(&list);
        begin_isolation();
        ASSERT_OK(roster_init(&roster, "n"));
        roster_list_begin(&roster);
        ASSERT_OK(roster_pod(&roster, REFLECTOR_LISTED, str_from(pod_text)));
        roster_list_end(&roster);
}

static void end(void) {
        isolation_done(&isolation);
        inventory_done(&inventory);
        records_done(&records);
        roster_done(&roster);
        scratch_remove(directory);
}

static RosterPod *the_pod(void) {
        return roster_find(&roster, STR("u"));
}

static const RecordContainer *container(const char *name) {
        return record_container(records_find(&records, STR("u")), str_from(name));
}

/* Devices of card 0, and of card 1 from `of_second` on. */
static void give(const char *name, DeviceKind kind, uint32_t first, uint32_t n, uint32_t of_second) {
        DeviceId ids[256];

        for (uint32_t i = 0; i < n; i++)
                ids[i] = device_id(i >= of_second, first + i);
        ASSERT_OK(evidence_give(&node, the_pod(), str_from(name), false, kind, &(DeviceSet){ids, n}));
}

/* With pages of this size. */
static void start(const char *name, uint32_t mem, uint32_t core) {
        const RosterPod *pod = the_pod();
        Fault fault = FAULT_NULL;
        size_t i = 0;

        record_set_size(records_find(&records, STR("u")), str_from(name), mem, core);
        while (strcmp(pod->containers[i].name, name) != 0)
                i++;
        ASSERT_OK(
                isolation_prepare(&isolation, &inventory, pod, &pod->containers[i], container(name), &fault));
}

static void lose_record(void) {
        records_drop(&records, records_find(&records, STR("u")));
}

#define IDS_OF_MAIN "\"0-0\",\"0-1\",\"0-2\",\"0-3\",\"0-4\",\"0-5\",\"0-6\",\"0-7\""

/* Compute last: devices of another kind make no other slice of it. */
static void adopt(void) {
        static const char checkpoint[] =
                "{\"Data\":{\"PodDeviceEntries\":["
                "{\"PodUID\":\"u\",\"ContainerName\":\"main\",\"ResourceName\":\"aliyun.com/gpu-mem\","
                "\"DeviceIDs\":[" IDS_OF_MAIN "]},"
                "{\"PodUID\":\"u\",\"ContainerName\":\"other\",\"ResourceName\":\"aliyun.com/gpu-mem\","
                "\"DeviceIDs\":[\"0-8\",\"0-9\"]},"
                "{\"PodUID\":\"u\",\"ContainerName\":\"main\",\"ResourceName\":\"aliyun.com/gpu-core."
                "percentage\",\"DeviceIDs\":[\"c0-0\",\"c0-1\"]}]}}";
        char path[96];
        CheckpointFile file;
        Fault fault = FAULT_NULL;

        write_file("checkpoint", checkpoint, path);
        file = evidence_file(path);
        ASSERT_OK(evidence_adopt(&file, &node, &fault));
        checkpoint_file_done(&file);
}

static void assert_size(const char *name, uint32_t mem, uint32_t core) {
        ASSERT_TRUE(container(name) != NULL);
        ASSERT_INT(container(name)->size_mem, mem);
        ASSERT_INT(container(name)->size_core, core);
}

static void a_lost_record_has_the_size_of_the_page(void) {
        begin("1xTesla-V100-SXM2-16GB:16160MiB", MEMORY_UNIT_GIB);
        give("main", DEVICE_MEM, 0, LIMIT, LIMIT);
        give("other", DEVICE_MEM, LIMIT, OTHER, OTHER);
        assert_size("main", 0, 0); /* there are no pages yet */
        start("main", 4, 20);
        start("other", 5, 50);
        lose_record();
        adopt();
        assert_size("main", 4, 20);
        assert_size("other", 5, 50);
        ASSERT_TRUE(container("main")->started);
        ASSERT_INT(container("main")->given[DEVICE_CORE].n, 2);
        end();
}

/* The agent does not know the cards when it starts: its state is lost in whole. */
static void no_inventory_is_needed(void) {
        begin("1xTesla-V100-SXM2-16GB:16160MiB", MEMORY_UNIT_GIB);
        give("main", DEVICE_MEM, 0, LIMIT, LIMIT);
        start("main", 4, 0);
        lose_record();
        inventory_done(&inventory);
        adopt();
        assert_size("main", 4, 0);
        end();
}

static void the_limit_is_no_size(void) {
        begin("1xTesla-V100-SXM2-16GB:16160MiB", MEMORY_UNIT_GIB);
        give("main", DEVICE_MEM, 0, LIMIT, LIMIT);
        start("main", 0, 0);
        lose_record();
        adopt();
        assert_size("main", 0, 0);
        end();
}

/* A record that is there, and a page of another container or with less than a page. */
static void other_pages_say_nothing(void) {
        char path[96], id[SLICEDIR_ID_SIZE], limits[SLICEDIR_ID_SIZE + 32];

        begin("1xTesla-V100-SXM2-16GB:16160MiB", MEMORY_UNIT_GIB);
        give("main", DEVICE_MEM, 0, LIMIT, LIMIT);
        start("main", 4, 0);
        record_set_size(records_find(&records, STR("u")), STR("main"), 0, 0);
        give("main", DEVICE_MEM, 0, LIMIT, LIMIT);
        assert_size("main", 0, 0);
        lose_record();
        give("other", DEVICE_MEM, 0, LIMIT, LIMIT); /* the same devices */
        assert_size("other", 0, 0);
        isolation_slice_name(container("other"), id);
        (void) snprintf(limits, sizeof limits, "slices/%s/0/limits", id);
        write_file(limits, "cut", path);
        lose_record();
        give("main", DEVICE_MEM, 0, LIMIT, LIMIT);
        assert_size("main", 0, 0);
        end();
}

/* A resize was interrupted between the pages of two cards. */
static void the_largest_page_counts(void) {
        char id[SLICEDIR_ID_SIZE];
        Fault fault = FAULT_NULL;

        begin("2xTesla-V100-SXM2-16GB:16160MiB", MEMORY_UNIT_GIB);
        give("main", DEVICE_MEM, 0, LIMIT, LIMIT / 2);
        start("main", 4, 0);
        lose_record();
        give("main", DEVICE_MEM, 0, LIMIT, LIMIT / 2);
        assert_size("main", 4, 0);
        isolation_slice_name(container("main"), id);
        ASSERT_OK(slicedir_resize(&isolation.slicedir, id, 1, UINT64_C(3232) << 20, 0, &fault));
        lose_record();
        give("main", DEVICE_MEM, 0, LIMIT, LIMIT / 2);
        assert_size("main", 6, 0);
        end();
}

/* Each size below the limit is read as it was written, for cards that are no multiple of a unit. */
static void every_smaller_size_is_read_back(void) {
        static const char *const cards[] = {"1xA:16160MiB", "1xA:40537MiB", "1xA:81559MiB", "1xA:143771MiB"};
        static const uint32_t units[] = {1024, 333, 128};

        for (size_t i = 0; i < ELEMENTSOF(cards) * ELEMENTSOF(units); i++) {
                begin(cards[i / ELEMENTSOF(units)], (MemoryUnit){units[i % ELEMENTSOF(units)]});
                for (uint32_t n = 1; n <= 15; n += 7)
                        for (uint32_t size = 1; size < n; size++) {
                                give("main", DEVICE_MEM, 0, n, n);
                                start("main", size, 0);
                                lose_record();
                                give("main", DEVICE_MEM, 0, n, n);
                                assert_size("main", size, 0);
                        }
                end();
        }
}

int main(void) {
        return TEST_MAIN(TEST(a_lost_record_has_the_size_of_the_page), TEST(no_inventory_is_needed),
                         TEST(the_limit_is_no_size), TEST(other_pages_say_nothing),
                         TEST(the_largest_page_counts), TEST(every_smaller_size_is_read_back));
}
