/* SPDX-License-Identifier: Apache-2.0 */

/* Every allocation of the ledger fails once, one at a time. Each time the result is -ENOMEM, every
 * sum is as it was, and the next attempt succeeds. The linker replaces malloc by these functions;
 * the leak sanitizer checks the rest. */

#include <errno.h>

#include "failing.h"
#include "making.h"
#include "share/environment.h"
#include "share/pod_grant.h"
#include "share/pod_grant_write.h"
#include "wire/card_info.h"
#include "wire/node.h"
#include "wire/pod.h"

/* Runs `attempt` on a ledger of 64 nodes with its first, second, ... allocation failing, until it
 * succeeds. With 64 nodes the next node makes the arrays and the hash table grow. */
static void fail_each(void (*before)(Ledger *l), int (*attempt)(Ledger *l)) {
        unsigned n = 0;

        for (bool failed = true; failed;) {
                _cleanup_(ledger_freep) Ledger *l = NULL;
                int r;

                ASSERT_OK(ledger_new(&l));
                for (int i = 0; i < 64; i++) {
                        char name[8];

                        (void) snprintf(name, sizeof name, "n%d", i);
                        set_node(l, name, "cgpu", "", EQUAL(30, 2));
                }
                if (before)
                        before(l);
                countdown = ++n;
                r = attempt(l);
                failed = countdown == 0;
                countdown = 0;
                ASSERT_TRUE(ledger_check(l));
                ASSERT_INT(r, failed ? -ENOMEM : 0);
                ASSERT_INT(failed ? attempt(l) : 0, 0);
                ASSERT_TRUE(ledger_check(l));
        }
        ASSERT_TRUE(n > 1); /* it did allocate */
}

static int grant_on_a_new_node(Ledger *l) {
        static const Slice slices[] = {{.card = 0, .mem = 1}, {.card = 3, .mem = 1}, {.card = 7, .mem = 1}};
        GrantSpec spec = {.name = STR("a"),
                          .uid = STR("u"),
                          .node = STR("new"),
                          .slices = slices,
                          .n_slices = 3,
                          .app = 5};
        Grant *g;

        return grant_new(l, &spec, &g);
}

static void grant_before(Ledger *l) {
        ASSERT_OK(grant_on_a_new_node(l));
}

/* Decoded by hand, so that only allocations of the ledger fail. */
static int describe(Ledger *l, const char *mode) {
        Node node = {.meta.name = STR("new"),
                     .mode = str_from(mode),
                     .allocatable_mem = STR("60"),
                     .allocatable_count = STR("4"),
                     .annotations.held_slices = STR("[{\"uid\":\"x\",\"allocation\":{\"0\":{\"9\":2}}},"
                                                    "{\"uid\":\"u\",\"allocation\":{\"0\":{\"8\":2}}}]")};

        return ledger_node_set(l, &node, NULL);
}

static int describe_a_node(Ledger *l) {
        return describe(l, "cgpu");
}

static void describe_before(Ledger *l) {
        ASSERT_OK(describe_a_node(l));
}

static int describe_another_mode(Ledger *l) {
        return describe(l, "share");
}

static int fence_a_new_node(Ledger *l) {
        return ledger_node_set_fenced(l, STR("fenced"), (const uint32_t[]){1}, 1);
}

static int what_if(Ledger *l) {
        RequestContainer c;
        Request r = simple(&c, 1, 0);
        LedgerNode *n = ledger_node_find(l, STR("n0"));
        Refusal refusal;

        return placement_check_without(n, &r, NULL, 0, &refusal);
}

static int choose_cards(Ledger *l) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c;
        Request r = simple(&c, 1, 0);
        Refusal refusal;
        Placement p;

        return placement_choose_cards(ledger_node_find(l, STR("n0")), &r, &arena, &p, &refusal);
}

static int write_annotations(Ledger *l) {
        static const Slice slices[] = {{.card = 0, .mem = 1, .core = 5},
                                       {.container = 1, .card = 0, .mem = 1, .core = 5}};
        _cleanup_buf_ Buf out = BUF_NULL;

        pod_grant_write(slices, 2, ledger_node_find(l, STR("n0")), false, 1, 1u << 6, &out);
        return buf_result(&out);
}

static void ignore_variable(void *userdata, const char *name, Str value) {
        (void) userdata;
}

static int make_environment(Ledger *l) {
        static const CardInfo card = {.units = 15, .uuid = STR("GPU-a")};
        static const Slice slice = {.mem = 1};

        return environment_make(&slice, 1, 1, MEMORY_UNIT_GIB, &card, 1, ignore_variable, NULL);
}

static int read_pod(Ledger *l) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodContainer c = {.name = STR("c"), .gpu_mem = {true, STR("4")}, .gpu_core = {true, STR("20")}};
        Pod pod = {.node_name = STR("n0"),
                   .annotations.allocation = STR("{\"0\":{\"1\":4}}"),
                   .annotations.core = STR("{\"0\":{\"2\":25}}"),
                   .annotations.gpu_type = STR("A100"),
                   .containers = &c,
                   .n_containers = 1};
        Refusal refusal;
        Request request;
        GrantSpec spec;
        int r;

        r = request_from_pod(&pod, &arena, &request, &refusal);
        if (r == 0)
                arena_done(&arena); /* so that the next one allocates again */
        if (r == 0)
                r = pod_grant_spec(&pod, &arena, &spec, NULL);
        if (r < 0)
                return r;
        arena_done(&arena);
        r = pod_grant_compare(&pod, &arena, NULL);
        return r == POD_GRANT_E_DIFFERS ? 0 : r;
}

static void the_ledger_survives(void) {
        fail_each(NULL, grant_on_a_new_node);
        fail_each(NULL, describe_a_node);
        fail_each(grant_before, describe_a_node);
        fail_each(describe_before, grant_on_a_new_node);
        fail_each(describe_before, describe_another_mode);
        fail_each(NULL, fence_a_new_node);
}

static void reading_and_writing_survive(void) {
        fail_each(NULL, what_if);
        fail_each(NULL, choose_cards);
        fail_each(NULL, write_annotations);
        fail_each(NULL, make_environment);
        fail_each(NULL, read_pod);
}

int main(void) {
        return TEST_MAIN(TEST(the_ledger_survives), TEST(reading_and_writing_survive));
}
