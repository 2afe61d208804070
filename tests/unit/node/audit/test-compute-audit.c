/* SPDX-License-Identifier: Apache-2.0 */

/* Window by window: which containers are reported. One pod has containers on card 0: main with
 * 30 percent, second with 50, and idle with nothing of the card. */

#include "node/audit/compute_audit.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "arbiter/tenant_policy.h"
#include "base/clock.h"
#include "gpu/cards/simulated_cards.h"
#include "node/audit/window_totals.h"
#include "node/isolation/isolation.h"
#include "scratch.h"

#define UID    "0a0a0a0a-0000-0000-0000-000000000001"
#define SECOND UINT64_C(1000000000)
#define MEM    "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":"
#define CORE   "\"aliyun.com/gpu-core.percentage\":"
#define ID     "\"containerID\":\"containerd://"

/* %s: the value of CGPU_DISABLE in main */
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
static Slicedir slices = SLICEDIR_NULL;
static const unsigned *given; /* percent of each second in windows; NULL: the arbiter is away */
static SliceLimits *pages[3]; /* of main, of second, and of aliquot run */
static ComputeAudit *compute_audit;
static unsigned reported, again;
static ComputeExcess last;
static char container[64];

static void on_excess(void *userdata, const ComputeExcess *excess) {
        ASSERT_TEXT(excess->pod->name, "a");
        reported += !excess->again;
        again += excess->again;
        last = *excess;
        (void) snprintf(container, sizeof container, "%s", excess->container ? excess->container : "-");
}

static void process(uint32_t pid, const char *id) {
        scratch_process(proc, pid, UID, id);
}

static void give_to(const char *name, bool init, DeviceKind kind, uint32_t first, uint32_t n) {
        DeviceId ids[64];

        for (uint32_t i = 0; i < n; i++)
                ids[i] = device_id(0, first + i);
        ASSERT_OK(records_give(&records, STR(UID), STR("d"), STR("a"), str_from(name), init, kind,
                               &(DeviceSet){ids, n}));
}

static void give(const char *name, DeviceKind kind, uint32_t first, uint32_t n) {
        give_to(name, false, kind, first, n);
}

/* A page with a weight, under policy 2. */
static void make_page(size_t which, const char *id, const char *uuid, uint32_t weight) {
        SliceSpec spec = {.limit = 1 << 30,
                          .card_bytes = 1 << 30,
                          .uuid = uuid,
                          .container = "d/a",
                          .request.weight = weight,
                          .compute.policy = COMPUTE_WEIGHTED};
        Fault fault = FAULT_NULL;
        char path[SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE + 32];
        int fd;

        ASSERT_OK(slicedir_update(&slices, id, SLICEDIR_AGENT "d/a", &spec, 1, &fault));
        (void) snprintf(path, sizeof path, "%s/%s/0/limits", slices.path, id);
        fd = open(path, O_RDWR | O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        pages[which] = mmap(NULL, sizeof(SliceLimits), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ASSERT_TRUE(pages[which] != MAP_FAILED);
        (void) close(fd);
}

static void make_slices(void) {
        const char *uuid = inventory.cards.cards[0].uuid;
        Fault fault = FAULT_NULL;
        char path[96], id[SLICEDIR_ID_SIZE];
        DeviceId ids[2] = {device_id(0, 0), device_id(0, 1)};

        (void) snprintf(path, sizeof path, "%s/slices", home);
        ASSERT_OK(slicedir_open(&slices, path, true, &fault));
        isolation_slice_name(&(RecordContainer){.given[DEVICE_MEM] = {ids, 2}}, id);
        make_page(0, id, uuid, 1);
        ids[0] = device_id(0, 2);
        isolation_slice_name(&(RecordContainer){.given[DEVICE_MEM] = {ids, 1}}, id);
        make_page(1, id, uuid, 2);
        make_page(2, "another", uuid, 1);
}

/* The arbiter gave each slice this many percent of the second. Its time is an hour ahead, so that
 * a test that the machine holds up does not take the arbiter for away. */
static void give_windows(const unsigned percent[3]) {
        for (size_t i = 0; i < 3; i++) {
                (void) atomic_fetch_add(&pages[i]->schedule.granted, percent[i] * (SECOND / 100));
                atomic_store(&pages[i]->schedule.seen, clock_nsec(CLOCK_MONOTONIC) + 3600 * SECOND);
        }
}

static void begin(ShareMode mode, ComputePolicy policy, const char *disabled) {
        Fault fault = FAULT_NULL;
        CardList cards = {0};
        char path[96], text[2048];

        (void) snprintf(home, sizeof home, "/tmp/aliquot-audit-XXXXXX");
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
        ASSERT_OK(node_compute_update(&compute, &(NodeAnnotations){0}, policy, &fault));
        ASSERT_OK(compute_audit_new(&(ComputeAuditOptions){.roster = &roster,
                                                           .records = &records,
                                                           .inventory = &inventory,
                                                           .compute = &compute,
                                                           .slicedir = &slices,
                                                           .proc = proc,
                                                           .window = 10 * SECOND,
                                                           .on_excess = on_excess},
                                    &compute_audit));
        given = NULL;
        reported = again = 0;
        container[0] = '\0';
}

static void end(void) {
        compute_audit = compute_audit_free(compute_audit);
        for (size_t i = 0; i < 3; i++) {
                if (pages[i])
                        (void) munmap(pages[i], sizeof(SliceLimits));
                pages[i] = NULL;
        }
        slicedir_done(&slices);
        inventory_done(&inventory);
        records_done(&records);
        roster_done(&roster);
        scratch_remove(home);
}

typedef struct Used {
        uint32_t pid, percent;
} Used;

/* Windows of ten censuses of a second each. */
static void windows(unsigned n_windows, const Used *used, size_t n) {
        CardUse uses[8] = {0};
        CardSpan span = {.nsec = SECOND};

        memcpy(span.uuid, inventory.cards.cards[0].uuid, sizeof span.uuid);
        for (size_t i = 0; i < n; i++) {
                memcpy(uses[i].uuid, span.uuid, sizeof span.uuid);
                uses[i].pid = used[i].pid;
                uses[i].nsec = used[i].percent * (SECOND / 100);
        }
        for (unsigned i = 0; i < 10 * n_windows; i++) {
                if (given)
                        give_windows(given);
                compute_audit_take(
                        compute_audit,
                        &(CardCensus){.untold = "", .uses = uses, .n_uses = n, .spans = &span, .n_spans = 1});
        }
}

#define WINDOWS(count, ...)                                                                                  \
        windows(count, (const Used[]){__VA_ARGS__}, sizeof((const Used[]){__VA_ARGS__}) / sizeof(Used))

static void count_excess(void *userdata, const ComputeExcess *excess) {
        (*(unsigned *) userdata)++;
}

static void excess_is_found_by_container(void) {
        unsigned lasting = 0;

        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "");
        process(10, "aaa");
        process(11, "aaa");
        process(20, "bbb");
        ASSERT_TRUE(compute_audit_wants(compute_audit));
        WINDOWS(20, {10, 20}, {11, 14}, {20, 55});
        ASSERT_INT(reported, 0);
        WINDOWS(2, {10, 40}, {11, 30}, {20, 30});
        ASSERT_INT(reported, 0);
        WINDOWS(1, {10, 40}, {11, 30}, {20, 30});
        ASSERT_INT(reported, 1);
        ASSERT_TEXT(container, "main");
        ASSERT_INT(last.used, 700000);
        ASSERT_INT(last.share, 300000);
        ASSERT_INT(last.pid, 10);
        ASSERT_TRUE(last.several);
        ASSERT_INT(last.nsec, 30 * SECOND);
        compute_audit_each_excess(compute_audit, count_excess, &lasting);
        ASSERT_INT(lasting, 1);
        WINDOWS(1, {10, 70});
        ASSERT_INT(reported, 1);
        ASSERT_INT(again, 1);
        WINDOWS(1, {10, 10});
        lasting = 0;
        compute_audit_each_excess(compute_audit, count_excess, &lasting);
        ASSERT_INT(lasting, 0);
        ASSERT_INT(compute_audit_excesses(compute_audit), 1);
        end();
}

static void container_without_a_slice_has_no_share(void) {
        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "");
        process(30, "ccc");
        WINDOWS(20, {30, 5});
        ASSERT_INT(reported, 0);
        WINDOWS(20, {30, 50});
        ASSERT_INT(reported, 1);
        ASSERT_TEXT(container, "idle");
        ASSERT_INT(last.share, 0);
        end();
}

/* The container is not in the pod's status yet. */
static void unknown_container_counts_for_the_pod(void) {
        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "");
        process(40, "zzz");
        WINDOWS(20, {40, 85});
        ASSERT_INT(reported, 0);
        WINDOWS(10, {40, 100});
        ASSERT_INT(reported, 1);
        ASSERT_TEXT(container, "-");
        ASSERT_INT(last.share, 800000);
        process(10, "aaa");
        WINDOWS(20, {40, 2}, {10, 98}); /* only the container is reported */
        ASSERT_INT(reported, 2);
        ASSERT_TEXT(container, "main");
        end();
}

/* Its init container, of 40 percent, runs beside the sidecar of 30, and ends before the main one of
 * 20 starts. */
static void init_container_runs_beside_a_sidecar(void) {
        static const char text[] =
                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"" UID "\"},"
                "\"spec\":{\"nodeName\":\"n\",\"initContainers\":["
                "{\"name\":\"side\",\"restartPolicy\":\"Always\"," MEM "\"1\"," CORE "\"30\"}}},"
                "{\"name\":\"init\"," MEM "\"1\"," CORE "\"40\"}}}],"
                "\"containers\":[{\"name\":\"last\"," MEM "\"1\"," CORE "\"20\"}}}]}}";

        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "");
        records_drop(&records, records_find(&records, STR(UID)));
        ASSERT_OK(roster_pod(&roster, REFLECTOR_MODIFIED, str_from(text)));
        give("side", DEVICE_MEM, 0, 1);
        give("side", DEVICE_CORE, 0, 30);
        give_to("init", true, DEVICE_MEM, 1, 1);
        give_to("init", true, DEVICE_CORE, 30, 40);
        give("last", DEVICE_MEM, 1, 1);
        give("last", DEVICE_CORE, 30, 20);
        process(40, "zzz");
        WINDOWS(20, {40, 70});
        ASSERT_INT(reported, 0);
        WINDOWS(10, {40, 100});
        ASSERT_INT(reported, 1);
        ASSERT_INT(last.share, 700000);
        end();
}

static void nothing_is_reported_without_caps(void) {
        static const ComputePolicy policies[] = {COMPUTE_PREEMPTIVE, COMPUTE_WEIGHTED, COMPUTE_SOFT,
                                                 COMPUTE_NATIVE};

        for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
                begin(SHARE_MODE_CGPU, policies[i], "");
                process(10, "aaa");
                ASSERT_FALSE(compute_audit_wants(compute_audit));
                WINDOWS(20, {10, 100});
                ASSERT_INT(reported, 0);
                end();
        }
        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "1"); /* CGPU_DISABLE */
        process(10, "aaa");
        process(20, "bbb");
        WINDOWS(20, {10, 100});
        ASSERT_INT(reported, 0);
        WINDOWS(20, {20, 100});
        ASSERT_INT(reported, 1); /* the other container of the pod is capped */
        end();
}

static void fair_share_caps_every_container(void) {
        begin(SHARE_MODE_CGPU, COMPUTE_FAIR, "");
        process(20, "bbb");
        ASSERT_TRUE(compute_audit_wants(compute_audit));
        WINDOWS(20, {20, 10});
        ASSERT_INT(reported, 0);
        WINDOWS(20, {20, 30});
        ASSERT_INT(reported, 1);
        ASSERT_INT(last.share, 50000); /* of twenty */
        end();
}

/* The next slice of a name may have had more when it is first read than the last one had ever. */
static void windows_of_a_slice_and_the_next_of_its_name_add_up(void) {
        static const unsigned had[2][3] = {{0, 0, 40}, {0, 0, 60}};
        const char ids[1][SLICEDIR_ID_SIZE] = {"another"};
        WindowTotals totals = {0};
        const char *uuid;
        WindowSum sum;

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        uuid = inventory.cards.cards[0].uuid;
        make_slices();
        window_totals_read(&totals, &slices, 0);
        give_windows(had[0]);
        window_totals_read(&totals, &slices, 0);
        (void) munmap(pages[2], sizeof(SliceLimits));
        slicedir_remove(&slices, ids[0]);
        window_totals_read(&totals, &slices, 0);
        make_page(2, ids[0], uuid, 1);
        give_windows(had[1]);
        window_totals_read(&totals, &slices, 0);
        ASSERT_TRUE(window_totals_of(&totals, uuid, ids, 1, &sum));
        ASSERT_INT(sum.own, SECOND);
        window_totals_done(&totals);
        end();
}

/* A window in which the share changed is not counted. */
static void changed_share_begins_anew(void) {
        Fault fault = FAULT_NULL;

        begin(SHARE_MODE_CGPU, COMPUTE_FAIR, "");
        process(20, "bbb");
        WINDOWS(1, {20, 45});
        ASSERT_OK(node_compute_update(&compute, &(NodeAnnotations){.max_inst = STR("2")}, COMPUTE_FAIR,
                                      &fault));
        WINDOWS(20, {20, 45});
        ASSERT_INT(reported, 0);
        ASSERT_OK(node_compute_update(&compute, &(NodeAnnotations){.max_inst = STR("4")}, COMPUTE_FAIR,
                                      &fault));
        WINDOWS(3, {20, 90});
        ASSERT_INT(reported, 0);
        WINDOWS(1, {20, 90});
        ASSERT_INT(reported, 1);
        end();
}

/* Use of another card, by a process in no pod, or of a pod that is gone, is not reported. */
static void foreign_use_is_not_reported(void) {
        CardUse use = {.uuid = "GPU-of-another-machine", .pid = 10, .nsec = SECOND};
        CardSpan span = {.uuid = "GPU-of-another-machine", .nsec = SECOND};

        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "");
        process(10, "aaa");
        for (int i = 0; i < 100; i++)
                compute_audit_take(compute_audit,
                                   &(CardCensus){.uses = &use, .n_uses = 1, .spans = &span, .n_spans = 1});
        WINDOWS(20, {77, 100});
        ASSERT_INT(reported, 0);
        WINDOWS(2, {10, 100});
        roster_list_begin(&roster);
        roster_list_end(&roster); /* the pod is gone */
        WINDOWS(20, {10, 100});
        ASSERT_INT(reported, 0);
        end();
}

/* Weights are 1, 2 and 1: the part of main is a quarter of the card. */
static void windows_bound_a_weighted_container(void) {
        static const unsigned alone[] = {0, 0, 0}, beside[] = {0, 100, 0}, held[] = {50, 50, 0},
                              few[] = {20, 40, 0};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_slices();
        process(10, "aaa");
        process(20, "bbb");
        given = alone;
        WINDOWS(20, {10, 100});
        ASSERT_TRUE(compute_audit_wants(compute_audit));
        given = held;
        WINDOWS(20, {10, 55}, {20, 45});
        given = beside;
        WINDOWS(20, {10, 29}, {20, 71});
        ASSERT_INT(reported, 0);
        WINDOWS(2, {10, 70}, {20, 30});
        ASSERT_INT(reported, 0);
        WINDOWS(1, {10, 70}, {20, 30});
        ASSERT_INT(reported, 1);
        ASSERT_TEXT(container, "main");
        ASSERT_TRUE(last.shared);
        ASSERT_INT(last.used, 700000);
        ASSERT_INT(last.share, 250000);
        given = alone;
        WINDOWS(20, {10, 100});
        ASSERT_INT(reported, 1);
        ASSERT_INT(again, 0);
        given = few; /* second left sixty */
        WINDOWS(20, {10, 64}, {20, 36});
        ASSERT_INT(reported, 1);
        WINDOWS(4, {10, 100});
        ASSERT_INT(reported, 2);
        ASSERT_INT(last.share, 600000);
        end();
}

/* Without the arbiter it is not known what was given, so nothing is counted. */
static void nothing_is_counted_without_the_arbiter(void) {
        static const unsigned beside[] = {0, 100, 0};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_slices();
        process(10, "aaa");
        given = beside;
        WINDOWS(2, {10, 70});
        given = NULL;
        atomic_store(&pages[0]->schedule.seen, 1);
        atomic_store(&pages[1]->schedule.seen, 1);
        atomic_store(&pages[2]->schedule.seen, 1);
        WINDOWS(20, {10, 70});
        given = beside;
        WINDOWS(2, {10, 70});
        ASSERT_INT(reported, 0);
        WINDOWS(1, {10, 70});
        ASSERT_INT(reported, 1);
        end();
}

/* A slice of aliquot run shares the card, too. Its cap reduces what is left for weights. */
static void caps_of_others_reduce_the_part(void) {
        static const unsigned beside[] = {0, 0, 100};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_slices();
        process(10, "aaa");
        pages[2]->policy = COMPUTE_FIXED;
        pages[2]->core_percent = 70;
        given = beside;
        WINDOWS(3, {10, 70});
        ASSERT_INT(reported, 1);
        ASSERT_INT(last.share, 100000); /* a third of 30 % */
        end();
}

/* The count of a page that is made again begins at zero, while its container goes on. */
static void page_made_again_counts_from_zero(void) {
        static const unsigned held[] = {50, 50, 0};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_slices();
        process(10, "aaa");
        given = held;
        for (int i = 0; i < 10; i++) {
                atomic_store(&pages[0]->schedule.granted, 0);
                atomic_store(&pages[1]->schedule.granted, 0);
                WINDOWS(1, {10, 50});
        }
        ASSERT_INT(reported, 0);
        end();
}

/* A pod as a whole may have what both of its containers may. */
static void windows_bound_a_weighted_pod(void) {
        static const unsigned beside[] = {0, 0, 100};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_slices();
        process(40, "zzz");
        given = beside;
        WINDOWS(20, {40, 79});
        ASSERT_INT(reported, 0);
        WINDOWS(20, {40, 100});
        ASSERT_INT(reported, 1);
        ASSERT_TEXT(container, "-");
        ASSERT_INT(last.share, 750000);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(excess_is_found_by_container), TEST(container_without_a_slice_has_no_share),
                         TEST(unknown_container_counts_for_the_pod), TEST(nothing_is_reported_without_caps),
                         TEST(fair_share_caps_every_container),
                         TEST(windows_of_a_slice_and_the_next_of_its_name_add_up),
                         TEST(changed_share_begins_anew), TEST(foreign_use_is_not_reported),
                         TEST(windows_bound_a_weighted_container),
                         TEST(nothing_is_counted_without_the_arbiter), TEST(caps_of_others_reduce_the_part),
                         TEST(page_made_again_counts_from_zero), TEST(windows_bound_a_weighted_pod),
                         TEST(init_container_runs_beside_a_sidecar));
}
