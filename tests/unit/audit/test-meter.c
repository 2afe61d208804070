/* SPDX-License-Identifier: Apache-2.0 */

/* Window by window: who is told of. One pod on card 0: main with 30 percent, second with 50, idle with nothing of the card. */

#include "audit/meter.h"

#include <stdio.h>
#include <stdlib.h>

#include "scratch.h"

#define UID    "0a0a0a0a-0000-0000-0000-000000000001"
#define SECOND UINT64_C(1000000000)
#define MEM    "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":"
#define CORE   "\"aliyun.com/gpu-core.percentage\":"
#define ID     "\"containerID\":\"containerd://"

/* %s: what main says of CGPU_DISABLE */
static const char pod[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"" UID "\"},"
                          "\"spec\":{\"nodeName\":\"n\",\"containers\":["
                          "{\"name\":\"main\",\"env\":[{\"name\":\"CGPU_DISABLE\",\"value\":\"%s\"}],"
                          "" MEM "\"2\"," CORE "\"30\"}}},"
                          "{\"name\":\"second\"," MEM "\"1\"," CORE "\"50\"}}},"
                          "{\"name\":\"idle\"}]},"
                          "\"status\":{\"containerStatuses\":["
                          "{\"name\":\"main\"," ID "aaa\"},"
                          "{\"name\":\"second\"," ID "bbb\"},"
                          "{\"name\":\"idle\"," ID "ccc\"}]}}";

static char home[64], proc[96];
static Roster roster;
static Records records;
static Inventory inventory;
static NodeCompute compute;
static Meter *meter;
static unsigned told, again;
static MeterExcess last;
static char container[64];

static void on_excess(void *userdata, const MeterExcess *excess) {
        ASSERT_TEXT(excess->pod->name, "a");
        told += !excess->again;
        again += excess->again;
        last = *excess;
        (void) snprintf(container, sizeof container, "%s", excess->container ? excess->container : "-");
}

static void process(uint32_t pid, const char *id) {
        scratch_process(proc, pid, UID, id);
}

static void give(const char *name, DeviceKind kind, uint32_t first, uint32_t n) {
        DeviceId ids[64];

        for (uint32_t i = 0; i < n; i++)
                ids[i] = device_id(0, first + i);
        ASSERT_OK(records_give(&records, STR(UID), STR("d"), STR("a"), str_from(name), false, kind,
                               &(DeviceSet){ids, n}));
}

static void begin(ShareMode mode, uint32_t policy, const char *disabled) {
        Fault fault = FAULT_NULL;
        CardList cards = {0};
        char path[96], text[2048];

        (void) snprintf(home, sizeof home, "/tmp/aliquot-meter-XXXXXX");
        scratch_make(home);
        (void) snprintf(proc, sizeof proc, "%s/proc", home);
        (void) snprintf(path, sizeof path, "%s/pods", home);
        ASSERT_OK(mkdir(proc, 0755));
        ASSERT_OK(roster_init(&roster, "n"));
        (void) snprintf(text, sizeof text, pod, disabled);
        ASSERT_OK(roster_pod(&roster, REFLECTOR_ADDED, str_from(text)));
        ASSERT_OK(records_open(&records, path, &fault));
        give("main", DEVICE_MEM, 0, 2);
        give("main", DEVICE_CORE, 0, 30);
        give("second", DEVICE_MEM, 2, 1);
        give("second", DEVICE_CORE, 30, 50);
        ASSERT_OK(cards_simulate(STR("2xTesla-V100-SXM2-16GB:16160MiB"), STR("n"), &cards, &fault));
        ASSERT_OK(inventory_set(&inventory, &cards, mode, MEMORY_UNIT_GIB));
        card_list_done(&cards);
        node_compute_init(&compute, policy);
        ASSERT_OK(node_compute_want(&compute, &(NodeAnnotations){0}, policy, &fault));
        ASSERT_OK(meter_new(&(MeterOptions){.roster = &roster,
                                            .records = &records,
                                            .inventory = &inventory,
                                            .compute = &compute,
                                            .proc = proc,
                                            .window = 10 * SECOND,
                                            .on_excess = on_excess},
                            &meter));
        told = again = 0;
        container[0] = '\0';
}

static void end(void) {
        meter = meter_free(meter);
        inventory_done(&inventory);
        records_done(&records);
        roster_done(&roster);
        scratch_remove(home);
}

typedef struct Used {
        uint32_t pid, percent;
} Used;

/* So many windows of ten censuses of a second. */
static void windows(unsigned n_windows, const Used *used, size_t n) {
        CardUse uses[8] = {0};
        CardSpan span = {.nsec = SECOND};

        memcpy(span.uuid, inventory.cards.cards[0].uuid, sizeof span.uuid);
        for (size_t i = 0; i < n; i++) {
                memcpy(uses[i].uuid, span.uuid, sizeof span.uuid);
                uses[i].pid = used[i].pid;
                uses[i].nsec = used[i].percent * (SECOND / 100);
        }
        for (unsigned i = 0; i < 10 * n_windows; i++)
                meter_take(
                        meter,
                        &(CardCensus){.untold = "", .uses = uses, .n_uses = n, .spans = &span, .n_spans = 1});
}

#define WINDOWS(count, ...)                                                                                  \
        windows(count, (const Used[]){__VA_ARGS__}, sizeof((const Used[]){__VA_ARGS__}) / sizeof(Used))

static void count_excess(void *userdata, const MeterExcess *excess) {
        (*(unsigned *) userdata)++;
}

static void by_container(void) {
        unsigned lasting = 0;

        begin(SHARE_MODE_CORE_MEM, 5, "");
        process(10, "aaa");
        process(11, "aaa");
        process(20, "bbb");
        ASSERT_TRUE(meter_wants(meter));
        WINDOWS(20, {10, 20}, {11, 14}, {20, 55});
        ASSERT_INT(told, 0);
        WINDOWS(2, {10, 40}, {11, 30}, {20, 30});
        ASSERT_INT(told, 0);
        WINDOWS(1, {10, 40}, {11, 30}, {20, 30});
        ASSERT_INT(told, 1);
        ASSERT_TEXT(container, "main");
        ASSERT_INT(last.used, 700000);
        ASSERT_INT(last.share, 300000);
        ASSERT_INT(last.pid, 10);
        ASSERT_TRUE(last.several);
        ASSERT_INT(last.nsec, 30 * SECOND);
        meter_each_excess(meter, count_excess, &lasting);
        ASSERT_INT(lasting, 1);
        WINDOWS(1, {10, 70});
        ASSERT_INT(told, 1);
        ASSERT_INT(again, 1);
        WINDOWS(1, {10, 10});
        lasting = 0;
        meter_each_excess(meter, count_excess, &lasting);
        ASSERT_INT(lasting, 0);
        ASSERT_INT(meter_excesses(meter), 1);
        end();
}

static void of_which_it_was_given_nothing(void) {
        begin(SHARE_MODE_CORE_MEM, 5, "");
        process(30, "ccc");
        WINDOWS(20, {30, 5});
        ASSERT_INT(told, 0);
        WINDOWS(20, {30, 50});
        ASSERT_INT(told, 1);
        ASSERT_TEXT(container, "idle");
        ASSERT_INT(last.share, 0);
        end();
}

/* Of one that is not in the status yet. */
static void who_cannot_be_told_is_the_pod(void) {
        begin(SHARE_MODE_CORE_MEM, 5, "");
        process(40, "zzz");
        WINDOWS(20, {40, 85});
        ASSERT_INT(told, 0);
        WINDOWS(10, {40, 100});
        ASSERT_INT(told, 1);
        ASSERT_TEXT(container, "-");
        ASSERT_INT(last.share, 800000);
        process(10, "aaa");
        WINDOWS(20, {40, 2}, {10, 98}); /* its container answers for it alone */
        ASSERT_INT(told, 2);
        ASSERT_TEXT(container, "main");
        end();
}

static void where_nobody_is_capped(void) {
        static const uint32_t policies[] = {1, 2, 4, 5};

        for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
                begin(SHARE_MODE_CGPU, policies[i], "");
                process(10, "aaa");
                ASSERT_FALSE(meter_wants(meter));
                WINDOWS(20, {10, 100});
                ASSERT_INT(told, 0);
                end();
        }
        begin(SHARE_MODE_CORE_MEM, 5, "1"); /* CGPU_DISABLE */
        process(10, "aaa");
        process(20, "bbb");
        WINDOWS(20, {10, 100});
        ASSERT_INT(told, 0);
        WINDOWS(20, {20, 100});
        ASSERT_INT(told, 1); /* the other one of its pod may not */
        end();
}

static void fair_share_caps_all(void) {
        begin(SHARE_MODE_CGPU, 0, "");
        process(20, "bbb");
        ASSERT_TRUE(meter_wants(meter));
        WINDOWS(20, {20, 10});
        ASSERT_INT(told, 0);
        WINDOWS(20, {20, 30});
        ASSERT_INT(told, 1);
        ASSERT_INT(last.share, 50000); /* of twenty */
        end();
}

/* Nothing is held against anybody for a time in which it had another share. */
static void the_share_becomes_another_one(void) {
        Fault fault = FAULT_NULL;

        begin(SHARE_MODE_CGPU, 0, "");
        process(20, "bbb");
        WINDOWS(1, {20, 45});
        ASSERT_OK(node_compute_want(&compute, &(NodeAnnotations){.max_inst = STR("2")}, 0, &fault));
        WINDOWS(20, {20, 45});
        ASSERT_INT(told, 0);
        ASSERT_OK(node_compute_want(&compute, &(NodeAnnotations){.max_inst = STR("4")}, 0, &fault));
        WINDOWS(3, {20, 90});
        ASSERT_INT(told, 0);
        WINDOWS(1, {20, 90});
        ASSERT_INT(told, 1);
        end();
}

/* Of another card, of nobody, of a pod that is not ours: they are in the metrics and nowhere else. */
static void whose_it_is_not(void) {
        CardUse use = {.uuid = "GPU-of-another-machine", .pid = 10, .nsec = SECOND};
        CardSpan span = {.uuid = "GPU-of-another-machine", .nsec = SECOND};

        begin(SHARE_MODE_CORE_MEM, 5, "");
        process(10, "aaa");
        for (int i = 0; i < 100; i++)
                meter_take(meter, &(CardCensus){.uses = &use, .n_uses = 1, .spans = &span, .n_spans = 1});
        WINDOWS(20, {77, 100});
        ASSERT_INT(told, 0);
        WINDOWS(2, {10, 100});
        roster_list_begin(&roster);
        roster_list_end(&roster); /* the pod is gone */
        WINDOWS(20, {10, 100});
        ASSERT_INT(told, 0);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(by_container), TEST(of_which_it_was_given_nothing),
                         TEST(who_cannot_be_told_is_the_pod), TEST(where_nobody_is_capped),
                         TEST(fair_share_caps_all), TEST(the_share_becomes_another_one),
                         TEST(whose_it_is_not));
}
