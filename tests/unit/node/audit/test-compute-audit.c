/* SPDX-License-Identifier: Apache-2.0 */

/* Window by window: who is told of. One pod on card 0: main with 30 percent, second with 50, idle
 * with nothing of the card. */

#include "node/audit/compute_audit.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "arbiter/tenant_policy.h"
#include "base/clock.h"
#include "gpu/cards/simulated_cards.h"
#include "node/isolation/isolation.h"
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
static Slicedir board = SLICEDIR_NULL;
static const unsigned *given; /* percent of windows each has of a second; NULL: the arbiter is away */
static SliceLimits *pages[3]; /* main's, second's, and one of aliquot run */
static ComputeAudit *compute_audit;
static unsigned told, again;
static ComputeExcess last;
static char container[64];

static void on_excess(void *userdata, const ComputeExcess *excess) {
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

/* With a weight, under policy 2; the other one is that of another program of the machine. */
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

        ASSERT_OK(slicedir_update(&board, id, SLICEDIR_AGENT "d/a", &spec, 1, &fault));
        (void) snprintf(path, sizeof path, "%s/%s/0/limits", board.path, id);
        fd = open(path, O_RDWR | O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        pages[which] = mmap(NULL, sizeof(SliceLimits), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ASSERT_TRUE(pages[which] != MAP_FAILED);
        (void) close(fd);
}

static void make_board(void) {
        const char *uuid = inventory.cards.cards[0].uuid;
        Fault fault = FAULT_NULL;
        char path[96], id[SLICEDIR_ID_SIZE];
        DeviceId ids[2] = {device_id(0, 0), device_id(0, 1)};

        (void) snprintf(path, sizeof path, "%s/board", home);
        ASSERT_OK(slicedir_open(&board, path, true, &fault));
        isolation_slice_name(&(RecordContainer){.given[DEVICE_MEM] = {ids, 2}}, id);
        make_page(0, id, uuid, 1);
        ids[0] = device_id(0, 2);
        isolation_slice_name(&(RecordContainer){.given[DEVICE_MEM] = {ids, 1}}, id);
        make_page(1, id, uuid, 2);
        make_page(2, "another", uuid, 1);
}

/* The arbiter was here, and gave each so many percent of this second. */
static void give_windows(const unsigned percent[3]) {
        for (size_t i = 0; i < 3; i++) {
                (void) atomic_fetch_add(&pages[i]->schedule.granted, percent[i] * (SECOND / 100));
                atomic_store(&pages[i]->schedule.seen, clock_nsec(CLOCK_MONOTONIC));
        }
}

static void begin(ShareMode mode, ComputePolicy policy, const char *disabled) {
        Fault fault = FAULT_NULL;
        CardList cards = {0};
        char path[96], text[2048];

        (void) snprintf(home, sizeof home, "/tmp/aliquot-compute_audit-XXXXXX");
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
                                                           .slicedir = &board,
                                                           .proc = proc,
                                                           .window = 10 * SECOND,
                                                           .on_excess = on_excess},
                                    &compute_audit));
        given = NULL;
        told = again = 0;
        container[0] = '\0';
}

static void end(void) {
        compute_audit = compute_audit_free(compute_audit);
        for (size_t i = 0; i < 3; i++) {
                if (pages[i])
                        (void) munmap(pages[i], sizeof(SliceLimits));
                pages[i] = NULL;
        }
        slicedir_done(&board);
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

static void by_container(void) {
        unsigned lasting = 0;

        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "");
        process(10, "aaa");
        process(11, "aaa");
        process(20, "bbb");
        ASSERT_TRUE(compute_audit_wants(compute_audit));
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
        compute_audit_each_excess(compute_audit, count_excess, &lasting);
        ASSERT_INT(lasting, 1);
        WINDOWS(1, {10, 70});
        ASSERT_INT(told, 1);
        ASSERT_INT(again, 1);
        WINDOWS(1, {10, 10});
        lasting = 0;
        compute_audit_each_excess(compute_audit, count_excess, &lasting);
        ASSERT_INT(lasting, 0);
        ASSERT_INT(compute_audit_excesses(compute_audit), 1);
        end();
}

static void of_which_it_was_given_nothing(void) {
        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "");
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
        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "");
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
        static const ComputePolicy policies[] = {COMPUTE_PREEMPTIVE, COMPUTE_WEIGHTED, COMPUTE_SOFT,
                                                 COMPUTE_NATIVE};

        for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
                begin(SHARE_MODE_CGPU, policies[i], "");
                process(10, "aaa");
                ASSERT_FALSE(compute_audit_wants(compute_audit));
                WINDOWS(20, {10, 100});
                ASSERT_INT(told, 0);
                end();
        }
        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "1"); /* CGPU_DISABLE */
        process(10, "aaa");
        process(20, "bbb");
        WINDOWS(20, {10, 100});
        ASSERT_INT(told, 0);
        WINDOWS(20, {20, 100});
        ASSERT_INT(told, 1); /* the other one of its pod may not */
        end();
}

static void fair_share_caps_all(void) {
        begin(SHARE_MODE_CGPU, COMPUTE_FAIR, "");
        process(20, "bbb");
        ASSERT_TRUE(compute_audit_wants(compute_audit));
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

        begin(SHARE_MODE_CGPU, COMPUTE_FAIR, "");
        process(20, "bbb");
        WINDOWS(1, {20, 45});
        ASSERT_OK(node_compute_update(&compute, &(NodeAnnotations){.max_inst = STR("2")}, COMPUTE_FAIR,
                                      &fault));
        WINDOWS(20, {20, 45});
        ASSERT_INT(told, 0);
        ASSERT_OK(node_compute_update(&compute, &(NodeAnnotations){.max_inst = STR("4")}, COMPUTE_FAIR,
                                      &fault));
        WINDOWS(3, {20, 90});
        ASSERT_INT(told, 0);
        WINDOWS(1, {20, 90});
        ASSERT_INT(told, 1);
        end();
}

/* Of another card, of nobody, of a pod that is not ours: they are in the metrics and nowhere
 * else. */
static void whose_it_is_not(void) {
        CardUse use = {.uuid = "GPU-of-another-machine", .pid = 10, .nsec = SECOND};
        CardSpan span = {.uuid = "GPU-of-another-machine", .nsec = SECOND};

        begin(SHARE_MODE_CORE_MEM, COMPUTE_NATIVE, "");
        process(10, "aaa");
        for (int i = 0; i < 100; i++)
                compute_audit_take(compute_audit,
                                   &(CardCensus){.uses = &use, .n_uses = 1, .spans = &span, .n_spans = 1});
        WINDOWS(20, {77, 100});
        ASSERT_INT(told, 0);
        WINDOWS(2, {10, 100});
        roster_list_begin(&roster);
        roster_list_end(&roster); /* the pod is gone */
        WINDOWS(20, {10, 100});
        ASSERT_INT(told, 0);
        end();
}

/* Weights of 1, 2 and 1: a quarter of the card is its part. */
static void by_what_was_given(void) {
        static const unsigned alone[] = {0, 0, 0}, beside[] = {0, 100, 0}, held[] = {50, 50, 0},
                              few[] = {20, 40, 0};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_board();
        process(10, "aaa");
        process(20, "bbb");
        given = alone;
        WINDOWS(20, {10, 100});
        ASSERT_TRUE(compute_audit_wants(compute_audit));
        given = held;
        WINDOWS(20, {10, 55}, {20, 45});
        given = beside;
        WINDOWS(20, {10, 29}, {20, 71});
        ASSERT_INT(told, 0);
        WINDOWS(2, {10, 70}, {20, 30});
        ASSERT_INT(told, 0);
        WINDOWS(1, {10, 70}, {20, 30});
        ASSERT_INT(told, 1);
        ASSERT_TEXT(container, "main");
        ASSERT_TRUE(last.shared);
        ASSERT_INT(last.used, 700000);
        ASSERT_INT(last.share, 250000);
        given = alone;
        WINDOWS(20, {10, 100});
        ASSERT_INT(told, 1);
        ASSERT_INT(again, 0);
        given = few; /* sixty are what the second left */
        WINDOWS(20, {10, 64}, {20, 36});
        ASSERT_INT(told, 1);
        WINDOWS(4, {10, 100});
        ASSERT_INT(told, 2);
        ASSERT_INT(last.share, 600000);
        end();
}

/* It may have been given too little as well. */
static void the_arbiter_is_away(void) {
        static const unsigned beside[] = {0, 100, 0};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_board();
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
        ASSERT_INT(told, 0);
        WINDOWS(1, {10, 70});
        ASSERT_INT(told, 1);
        end();
}

/* Another program of the machine is one of those that share the card, and a slice with a cap takes
 * from what is left for weights. */
static void others_of_the_card(void) {
        static const unsigned beside[] = {0, 0, 100};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_board();
        process(10, "aaa");
        pages[2]->policy = COMPUTE_FIXED;
        pages[2]->core_percent = 70;
        given = beside;
        WINDOWS(3, {10, 70});
        ASSERT_INT(told, 1);
        ASSERT_INT(last.share, 100000); /* a third of 30 % */
        end();
}

/* A page that is made anew begins at nothing, and its container goes on. */
static void a_page_is_made_anew(void) {
        static const unsigned held[] = {50, 50, 0};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_board();
        process(10, "aaa");
        given = held;
        for (int i = 0; i < 10; i++) {
                atomic_store(&pages[0]->schedule.granted, 0);
                atomic_store(&pages[1]->schedule.granted, 0);
                WINDOWS(1, {10, 50});
        }
        ASSERT_INT(told, 0);
        end();
}

/* As a whole it may have what both of its containers may. */
static void a_pod_by_what_was_given(void) {
        static const unsigned beside[] = {0, 0, 100};

        begin(SHARE_MODE_CGPU, COMPUTE_WEIGHTED, "");
        make_board();
        process(40, "zzz");
        given = beside;
        WINDOWS(20, {40, 79});
        ASSERT_INT(told, 0);
        WINDOWS(20, {40, 100});
        ASSERT_INT(told, 1);
        ASSERT_TEXT(container, "-");
        ASSERT_INT(last.share, 750000);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(by_container), TEST(of_which_it_was_given_nothing),
                         TEST(who_cannot_be_told_is_the_pod), TEST(where_nobody_is_capped),
                         TEST(fair_share_caps_all), TEST(the_share_becomes_another_one),
                         TEST(whose_it_is_not), TEST(by_what_was_given), TEST(the_arbiter_is_away),
                         TEST(others_of_the_card), TEST(a_page_is_made_anew), TEST(a_pod_by_what_was_given));
}
