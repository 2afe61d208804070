/* SPDX-License-Identifier: Apache-2.0 */

/* Census by census: what is reported, and when. One pod has a slice of 2 of 15 units, 2154 MiB, of
 * one card. */

#include "gpu/cards/simulated_cards.h"
#include "node/audit/memory_audit.h"

#include <stdio.h>
#include <stdlib.h>

#include "scratch.h"
#include "thorough.h"

#define UID "0a0a0a0a-0000-0000-0000-000000000001"
#define MIB (UINT64_C(1) << 20)
#define POD                                                                                                  \
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"" UID                                   \
        "\"},\"spec\":{\"nodeName\":\"n\",\"containers\":["                                                  \
        "{\"name\":\"main\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"2\"}}}]},"                   \
        "\"status\":{\"containerStatuses\":[{\"name\":\"main\",\"containerID\":\"containerd://aaa\"}]}}"

static char home[64], proc[96];
static Roster roster;
static Records records;
static Inventory inventory;
static MemoryAudit *audit;
static unsigned reported, again, unaccounted;
static size_t n_pids, n_ended;
static uint64_t used;

static void on_excess(void *userdata, const MemoryExcess *excess) {
        ASSERT_TEXT(excess->pod->name, "a");
        reported += !excess->again;
        again += excess->again;
        n_pids = excess->n_pids;
        n_ended = excess->n_ended;
        used = excess->used;
}

static void on_unaccounted(void *userdata, const UnaccountedMemory *found) {
        unaccounted++;
}

static void process(uint32_t pid, const char *id) {
        scratch_process(proc, pid, UID, id);
}

static void gone(uint32_t pid) {
        char path[128];

        (void) snprintf(path, sizeof path, "%s/%u", proc, pid);
        scratch_remove(path);
}

static void give(const char *name, bool init, uint32_t first, uint32_t n) {
        DeviceId ids[16];

        for (uint32_t i = 0; i < n; i++)
                ids[i] = device_id(0, first + i);
        ASSERT_OK(records_give(&records, STR(UID), STR("d"), STR("a"), str_from(name), init, DEVICE_MEM,
                               &(DeviceSet){ids, n}));
}

static void begin(void) {
        Fault fault = FAULT_NULL;
        CardList cards = {0};
        char path[96];

        (void) snprintf(home, sizeof home, "/tmp/aliquot-audit-XXXXXX");
        scratch_make(home);
        (void) snprintf(proc, sizeof proc, "%s/proc", home);
        (void) snprintf(path, sizeof path, "%s/pods", home);
        ASSERT_OK(mkdir(proc, 0755));
        ASSERT_OK(roster_init(&roster, "n"));
        ASSERT_OK(roster_pod(&roster, REFLECTOR_ADDED, STR(POD)));
        ASSERT_OK(records_open(&records, path, &fault));
        give("main", false, 0, 2);
        ASSERT_OK(cards_simulate(STR("1xTesla-V100-SXM2-16GB:16160MiB"), STR("n"), &cards, &fault));
        ASSERT_OK(inventory_set(&inventory, &cards, SHARE_MODE_CORE_MEM, MEMORY_UNIT_GIB));
        card_list_done(&cards);
        ASSERT_OK(memory_audit_new(&(MemoryAuditOptions){.roster = &roster,
                                                         .records = &records,
                                                         .inventory = &inventory,
                                                         .proc = proc,
                                                         .on_excess = on_excess,
                                                         .on_unaccounted = on_unaccounted},
                                   &audit));
        reported = again = unaccounted = 0;
        n_pids = n_ended = 0;
}

static void end(void) {
        audit = memory_audit_free(audit);
        inventory_done(&inventory);
        records_done(&records);
        roster_done(&roster);
        scratch_remove(home);
}

typedef struct Held {
        uint32_t pid;
        uint64_t mib;
} Held;

static void census(const Held *held, size_t n) {
        CardUsage *usage = calloc(n + 1, sizeof *usage);

        ASSERT_TRUE(usage != NULL);
        for (size_t i = 0; i < n; i++) {
                (void) snprintf(usage[i].uuid, sizeof usage[i].uuid, "%s", inventory.cards.cards[0].uuid);
                usage[i].pid = held[i].pid;
                usage[i].bytes = held[i].mib * MIB;
        }
        memory_audit_take(audit, &(CardCensus){.usage = usage, .n = n, .untold = ""});
        free(usage);
}

#define CENSUS(...) census((const Held[]){__VA_ARGS__}, sizeof((const Held[]){__VA_ARGS__}) / sizeof(Held))

static void reported_while_it_lasts(void) {
        begin();
        process(10, "aaa");
        for (int i = 0; i < 5; i++)
                CENSUS({10, 2154 + 64});
        ASSERT_INT(reported, 0);
        CENSUS({10, 2154 + 65});
        CENSUS({10, 2154 + 65});
        ASSERT_INT(reported, 0);
        CENSUS({10, 2154 + 65});
        ASSERT_INT(reported, 1);
        CENSUS({10, 2154 + 65});
        CENSUS({10, 2154});
        CENSUS({10, 2154 + 65});
        ASSERT_INT(reported, 1);
        ASSERT_INT(again, 2); /* not in the census below the limit */
        for (int i = 0; i < 6; i++)
                CENSUS({10, 100});
        for (int i = 0; i < 3; i++)
                CENSUS({10, 9000});
        ASSERT_INT(reported, 2);
        end();
}

/* Another slice may have what was given up: from then on the container may hold the rest alone. */
static void what_was_given_up_counts_no_more(void) {
        static const char object[] =
                "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"aliquot.dev/grown-slices\":"
                "\"{\\\"serial\\\":2,\\\"slices\\\":[{\\\"uid\\\":\\\"" UID
                "\\\",\\\"container\\\":0,\\\"card\\\":0,\\\"lessMem\\\":1}]}\"}},\"status\":{}}";
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Node node;

        begin();
        process(10, "aaa");
        for (int i = 0; i < 5; i++)
                CENSUS({10, 2154});
        ASSERT_INT(reported, 0);
        ASSERT_OK(node_decode(str_from(object), &arena, &node, NULL));
        (void) ledger_node_set(roster.ledger, &node, NULL);
        for (int i = 0; i < 5; i++)
                CENSUS({10, 1077 + 64});
        ASSERT_INT(reported, 0);
        for (int i = 0; i < 3; i++)
                CENSUS({10, 1077 + 65});
        ASSERT_INT(reported, 1);
        end();
}

static void one_census_below_does_not_evade(void) {
        begin();
        process(10, "aaa");
        for (int i = 0; i < 2; i++) {
                CENSUS({10, 9000});
                CENSUS({10, 9000});
                CENSUS({10, 10});
        }
        ASSERT_INT(reported, 1);
        end();
}

/* Ending all processes now and then does not evade the report either. */
static void ending_all_processes_does_not_evade(void) {
        begin();
        for (uint32_t i = 0; i < 2; i++) {
                process(10 + i, "aaa");
                CENSUS({10 + i, 9000});
                CENSUS({10 + i, 9000});
                gone(10 + i);
                census(NULL, 0);
        }
        ASSERT_INT(reported, 1);
        end();
}

/* Holds of `hold` ms every three times as long, from a phase on; a census each 1,000 ms. Returns
 * the census that reported it; 0: none of 120. */
static unsigned reported_after(unsigned hold, unsigned period, unsigned phase) {
        unsigned n = 0;

        begin();
        process(10, "aaa");
        while (n < 120 && reported == 0) {
                bool holds = (1000 * n++ + phase) % period < hold;

                CENSUS({10, holds ? 4000 : 100});
        }
        n = reported > 0 ? n : 0;
        end();
        return n;
}

/* Holds that last from a third of a census to five, for a third of the time. A period is no
 * multiple of the census, whose phase then would be chance. */
static void holds_now_and_then_are_reported(void) {
        unsigned n, most = 0, step = few_or_all(400, 40);

        for (unsigned hold = 300; hold <= 5000; hold += 235)
                for (unsigned phase = 0; phase < 3 * hold; phase += step) {
                        n = reported_after(hold, 3 * hold + 7, phase);
                        ASSERT_TRUE(n > 0 && n <= 60);
                        most = n > most ? n : most;
                }
        (void) printf("reported after at most %u censuses\n", most);
        ASSERT_INT(reported_after(1000, 3000, 0) > 0, 1);
        ASSERT_INT(reported_after(1000, 11000, 0), 0);
}

/* Once the slow score has reported it, it lasts over the pauses, and is reported once. */
static void holds_are_reported_once(void) {
        begin();
        process(10, "aaa");
        for (int i = 0; i < 100; i++) {
                CENSUS({10, 4000});
                CENSUS({10, 100});
                CENSUS({10, 100});
        }
        ASSERT_INT(reported, 1);
        ASSERT_TRUE(again > 80);
        for (int i = 0; i < 60; i++)
                CENSUS({10, 100});
        CENSUS({10, 4000});
        ASSERT_INT(reported, 1);
        end();
}

static void all_processes_are_named(void) {
        Held held[500];

        begin();
        for (uint32_t i = 0; i < 500; i++) {
                process(1000 + i, "aaa");
                held[i] = (Held){1000 + i, 10};
        }
        for (int i = 0; i < 3; i++)
                census(held, 500);
        ASSERT_INT(reported, 1);
        ASSERT_INT(n_pids, 500);
        ASSERT_INT(n_ended, 0);
        end();
}

static void memory_left_behind_counts(void) {
        begin();
        process(10, "aaa");
        process(11, "aaa");
        CENSUS({10, 2000}, {11, 100});
        gone(10);
        CENSUS({10, 2000}, {11, 100});
        for (int i = 0; i < 3; i++)
                CENSUS({10, 2000}, {11, 2000});
        ASSERT_INT(reported, 1);
        ASSERT_INT(used / MIB, 4000);
        ASSERT_INT(n_pids, 2);
        ASSERT_INT(n_ended, 1);
        end();
}

/* The Node's annotation is lost: the record has what is in force, and what may be held after a
 * shrink. */
static void growth_of_the_record_is_no_excess(void) {
        Record *record;

        begin();
        process(10, "aaa");
        record = records_find(&records, STR(UID));
        record_set_size(record, STR("main"), 8, 0);
        for (int i = 0; i < 5; i++)
                CENSUS({10, 8618});
        ASSERT_INT(reported, 0);
        record_set_permit(record, STR("main"), 8);
        record_set_size(record, STR("main"), 0, 0);
        for (int i = 0; i < 5; i++)
                CENSUS({10, 8618});
        ASSERT_INT(reported, 0);
        record_set_permit(record, STR("main"), 0);
        for (int i = 0; i < 3; i++)
                CENSUS({10, 8618});
        ASSERT_INT(reported, 1);
        end();
}

/* The container is not in the pod's status yet, so the pod counts. Its init container, of 4 units,
 * runs beside the sidecar of 3, and ends before the main container of 2 starts. */
static void init_container_runs_beside_a_sidecar(void) {
        static const char pod[] =
                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"" UID "\"},"
                "\"spec\":{\"nodeName\":\"n\",\"initContainers\":["
                "{\"name\":\"side\",\"restartPolicy\":\"Always\",\"resources\":{\"limits\":"
                "{\"aliyun.com/gpu-mem\":\"3\"}}},"
                "{\"name\":\"init\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"4\"}}}],"
                "\"containers\":["
                "{\"name\":\"main\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"2\"}}}]}}";

        begin();
        ASSERT_OK(roster_pod(&roster, REFLECTOR_MODIFIED, str_from(pod)));
        give("side", false, 2, 3);
        give("init", true, 5, 4);
        process(10, "zzz");
        process(11, "yyy");
        for (int i = 0; i < 5; i++)
                CENSUS({10, 3 * 1077}, {11, 4 * 1077 + 64});
        ASSERT_INT(reported, 0);
        for (int i = 0; i < 3; i++)
                CENSUS({10, 3 * 1077}, {11, 4 * 1077 + 80});
        ASSERT_INT(reported, 1);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(reported_while_it_lasts), TEST(what_was_given_up_counts_no_more),
                         TEST(one_census_below_does_not_evade), TEST(holds_now_and_then_are_reported),
                         TEST(holds_are_reported_once), TEST(ending_all_processes_does_not_evade),
                         TEST(all_processes_are_named), TEST(memory_left_behind_counts),
                         TEST(growth_of_the_record_is_no_excess), TEST(init_container_runs_beside_a_sidecar));
}
