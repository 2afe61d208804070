/* SPDX-License-Identifier: Apache-2.0 */

/* Pods on their way to a node count for the order of nodes while they are on their way, and for
 * nothing else. */

#include "scheduler/question/promises.h"
#include "test.h"
#include "wire/node.h"

static void set_node(Ledger *l, const char *name) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        char json[512];
        Fault fault = FAULT_NULL;
        Node node;

        (void) snprintf(json, sizeof json,
                        "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"ack.node.gpu.schedule\":\"core_mem\"}},"
                        "\"status\":"
                        "{\"allocatable\":{\"aliyun.com/gpu-mem\":\"30\",\"aliyun.com/gpu-count\":\"2\"}}}",
                        name);
        ASSERT_OK(node_decode(str_from(json), &arena, &node, &fault));
        ASSERT_OK(ledger_node_set(l, &node, &fault));
}

static Request ask(RequestContainer *c, uint32_t mem, uint32_t core) {
        *c = (RequestContainer){.mem = mem, .core = core};
        return (Request){.mem = mem, .core = core, .cards = 1, .containers = c, .n_containers = 1};
}

static void counts_what_is_on_its_way(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        static Promises p;
        RequestContainer c;
        Request r = ask(&c, 10, 0);
        const LedgerNode *n;
        Refusal refusal;

        p = (Promises){0};
        ASSERT_OK(ledger_new(&l));
        set_node(l, "n");
        set_node(l, "m");
        n = ledger_node_find(l, STR("n"));
        ASSERT_TRUE(promises_leave_room(&p, n, &r, STR("c"), 1));
        promises_make(&p, STR("a"), STR("n"), &r, 1);
        ASSERT_TRUE(promises_leave_room(&p, n, &r, STR("c"), 1)); /* the other card */
        promises_make(&p, STR("b"), STR("n"), &r, 1);
        ASSERT_FALSE(promises_leave_room(&p, n, &r, STR("c"), 1));
        /* Its own promise is no obstacle. */
        ASSERT_TRUE(promises_leave_room(&p, n, &r, STR("b"), 1));
        ASSERT_TRUE(promises_leave_room(&p, ledger_node_find(l, STR("m")), &r, STR("c"), 1));
        ASSERT_INT(placement_check(n, &r, &refusal), 0); /* the ledger does not change */
}

static void a_promise_ends_by_itself_and_moves_with_its_pod(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        static Promises p;
        RequestContainer c;
        Request r = ask(&c, 15, 0);
        const LedgerNode *n;

        p = (Promises){0};
        ASSERT_OK(ledger_new(&l));
        set_node(l, "n");
        n = ledger_node_find(l, STR("n"));
        promises_make(&p, STR("a"), STR("n"), &r, 1);
        promises_make(&p, STR("b"), STR("n"), &r, 1);
        ASSERT_FALSE(promises_leave_room(&p, n, &r, STR("c"), PROMISE_USEC));
        ASSERT_TRUE(promises_leave_room(&p, n, &r, STR("c"), 1 + PROMISE_USEC));
        promises_make(&p, STR("a"), STR("n"), &r, 5);
        promises_make(&p, STR("b"), STR("n"), &r, 5);
        promises_make(&p, STR("b"), STR("elsewhere"), &r, 5);
        ASSERT_TRUE(promises_leave_room(&p, n, &r, STR("c"), 6));
}

static void compute_and_mixing_count_as_well(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        static Promises p;
        RequestContainer c, cc;
        Request core = ask(&c, 1, 60), mem = ask(&cc, 1, 0);
        const LedgerNode *n;

        p = (Promises){0};
        ASSERT_OK(ledger_new(&l));
        set_node(l, "n");
        n = ledger_node_find(l, STR("n"));
        promises_make(&p, STR("a"), STR("n"), &core, 1);
        ASSERT_TRUE(promises_leave_room(&p, n, &core, STR("c"), 1));
        /* Kinds may not be mixed there. */
        ASSERT_FALSE(promises_leave_room(&p, n, &mem, STR("c"), 1));
        promises_make(&p, STR("b"), STR("n"), &core, 1);
        ASSERT_FALSE(promises_leave_room(&p, n, &core, STR("c"), 1));
}

static void the_oldest_goes_when_there_are_too_many(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        static Promises p;
        RequestContainer c;
        Request r = ask(&c, 15, 0);
        char uid[300];

        p = (Promises){0};
        ASSERT_OK(ledger_new(&l));
        set_node(l, "n");
        promises_make(&p, STR("a"), STR("n"), &r, 1);
        promises_make(&p, STR("b"), STR("n"), &r, 1);
        for (int i = 0; i < PROMISES_MAX - 1; i++) {
                (void) snprintf(uid, sizeof uid, "other-%d", i);
                promises_make(&p, str_from(uid), STR("m"), &r, 1);
        }
        ASSERT_TRUE(promises_leave_room(&p, ledger_node_find(l, STR("n")), &r, STR("c"),
                                        1)); /* b alone is left */
        memset(uid, 'x', sizeof uid);
        /* Too long: forgotten, not cut. */
        promises_make(&p, (Str){uid, sizeof uid}, STR("n"), &r, 1);
        ASSERT_TRUE(promises_leave_room(&p, ledger_node_find(l, STR("n")), &r, STR("c"), 1));
}

int main(void) {
        return TEST_MAIN(
                TEST(counts_what_is_on_its_way), TEST(a_promise_ends_by_itself_and_moves_with_its_pod),
                TEST(compute_and_mixing_count_as_well), TEST(the_oldest_goes_when_there_are_too_many));
}
