/* SPDX-License-Identifier: Apache-2.0 */

/* A card of 16 units, whose slices have other charges than their limits. */

#include "making.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"
#include "share/ledger_growth.h"
#include "wire/json_write.h"

/* ---- the entry ---- */

static int read_entry(const char *members, Arena *arena, Growth *ret) {
        char text[256];

        (void) snprintf(text, sizeof text,
                        "{\"serial\":3,\"slices\":[{\"uid\":\"a\",\"container\":0,\"card\":0,%s}]}", members);
        return growth_read(arena_str(arena, str_from(text)), arena, ret, NULL);
}

static void a_size_below_the_limit_is_written_as_what_is_less(void) {
        static const char *const texts[] = {
                "{\"serial\":3,\"slices\":[{\"uid\":\"a\",\"container\":0,\"card\":0,\"mem\":4,\"core\":0}]}",
                "{\"serial\":3,\"slices\":[{\"uid\":\"a\",\"container\":0,\"card\":0,\"mem\":0,\"core\":10,"
                "\"lessMem\":4}]}",
                "{\"serial\":3,\"slices\":[{\"uid\":\"a\",\"container\":0,\"card\":0,\"mem\":0,\"core\":0,"
                "\"lessMem\":4,\"lessCore\":30}]}"};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                _cleanup_buf_ Buf out = BUF_NULL;
                Growth g;

                ASSERT_OK(growth_read(str_from(texts[i]), &arena, &g, NULL));
                ASSERT_INT(g.list[0].size.mem, i == 0 ? 4 : -4);
                growth_write(&g, &out);
                ASSERT_STR(buf_str(&out), str_from(texts[i]));
        }
}

static void an_entry_is_above_the_limit_or_below_it(void) {
        static const char *const wrong[] = {"\"mem\":1,\"lessMem\":1", "\"core\":5,\"lessCore\":5",
                                            "\"lessMem\":-1", "\"lessMem\":1048577", "\"lessCore\":101"};
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Growth g;

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                ASSERT_INT(read_entry(wrong[i], &arena, &g), GROWTH_E_MALFORMED);
        ASSERT_OK(read_entry("\"lessMem\":1048576,\"core\":5", &arena, &g));
}

static int32_t keep(int32_t entry, int32_t in_force, int32_t wanted, int32_t held, int32_t permit) {
        const GrowthUse use = {.in_force.mem = in_force,
                               .wanted.mem = wanted,
                               .held = {held, INT32_MIN},
                               .permit.mem = permit};

        return growth_keep((GrowthSize){entry, 0}, &use).mem;
}

static void a_charge_falls_as_far_as_memory_is_free(void) {
        ASSERT_INT(keep(0, -4, -4, -8, 0), -4);  /* the page is lowered */
        ASSERT_INT(keep(0, -4, -4, -2, 0), -2);  /* the processes hold more */
        ASSERT_INT(keep(0, -4, -4, 0, 0), 0);    /* all of the limit */
        ASSERT_INT(keep(0, 0, -4, -8, 0), 0);    /* the size is not in force yet */
        ASSERT_INT(keep(2, -4, -4, 1, 2), 1);    /* from above the limit, still held */
        ASSERT_INT(keep(-4, -4, 0, -4, 0), -4);  /* it is wanted again, and not permitted */
        ASSERT_INT(keep(0, -4, 0, -4, 0), 0);    /* it is permitted */
        ASSERT_INT(keep(-2, -4, -4, -2, 0), -2); /* some was free before */
        ASSERT_INT(keep(-2, -4, -4, -3, 0), -3);
        ASSERT_INT(keep(2, -4, -4, 1, 0), 1); /* the record has no permit */
}

/* Another slice may have what was given up. */
static void counters_do_not_take_back_what_was_given_up(void) {
        ASSERT_INT(keep(-4, -4, -4, 1 << 20, 0), -4);
        ASSERT_INT(keep(-2, -4, -4, 1 << 20, 0), -2);
        ASSERT_INT(keep(-2, -4, 2, 1 << 20, 0), -2);
}

/* ---- the ledger ---- */

/* What the node object says: the entries of `slices`. */
static void set_entries(Ledger *l, unsigned serial, const char *slices, const char *more) {
        _cleanup_buf_ Buf growth = BUF_NULL, text = BUF_NULL, members = BUF_NULL;

        buf_appendf(&growth, "{\"serial\":%u,\"slices\":[%s]}", serial, slices);
        json_write_quoted(&text, serial > 0 ? buf_str(&growth) : STR(""));
        buf_appendf(&members, ",\"annotations\":{\"aliquot.dev/grown-slices\":" STR_FMT "%s}" EQUAL(16, 1),
                    STR_ARG(buf_str(&text)), more);
        set_node(l, "n", "core_mem", "", members.data);
}

static Grant *make(Ledger *l, const char *uid, const Slice *slices, size_t n) {
        const GrantSpec spec = {.namespace_ = STR("d"),
                                .name = str_from(uid),
                                .uid = str_from(uid),
                                .node = STR("n"),
                                .slices = slices,
                                .n_slices = n};
        Grant *g;

        ASSERT_OK(grant_new(l, &spec, &g));
        return g;
}

static Grant *make_pod(Ledger *l, const char *uid, uint32_t mem, uint32_t core) {
        return make(l, uid, &(Slice){.mem = mem, .core = core}, 1);
}

#define BELOW(uid, mem, core)                                                                                \
        "{\"uid\":\"" uid "\",\"container\":0,\"card\":0,\"lessMem\":" #mem ",\"lessCore\":" #core "}"
#define ABOVE(uid, mem) "{\"uid\":\"" uid "\",\"container\":0,\"card\":0,\"mem\":" #mem "}"

static LedgerNode *node_of(const Ledger *l) {
        return ledger_node_find(l, STR("n"));
}

static uint32_t free_for_pods(const Ledger *l) {
        return ledger_card_free(node_of(l), card_at(l, "n", 0));
}

static int reserve(const Ledger *l, const char *uid, int32_t mem, int32_t core, Fault *fault) {
        const GrowthEntry e = {.uid = str_from(uid), .size = {mem, core}};
        int r = ledger_growth_reserve(node_of(l), &e, fault);

        ASSERT_TRUE(ledger_check(l));
        return r;
}

static void a_shrink_frees_for_growth_and_not_for_pods(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(ledger_new(&l));
        set_entries(l, 1, "", "");
        (void) make_pod(l, "a", 8, 60);
        (void) make_pod(l, "b", 8, 40);
        ASSERT_INT(reserve(l, "b", 1, 0, &fault), LEDGER_GROWTH_E_ROOM);
        set_entries(l, 2, BELOW("a", 4, 30), "");
        ASSERT_INT(free_for_pods(l), 0);
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 4);
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).core, 30);
        ASSERT_INT(reserve(l, "b", 5, 0, &fault), LEDGER_GROWTH_E_ROOM);
        ASSERT_INT(reserve(l, "b", 4, 35, &fault), LEDGER_GROWTH_E_ROOM);
        ASSERT_OK(reserve(l, "b", 4, 30, &fault));
        ASSERT_INT(free_for_pods(l), 0);
        ASSERT_INT(card_at(l, "n", 0)->used, 20); /* the larger of limit and charge of each */
        ASSERT_INT(ledger_node_shown(node_of(l), card_at(l, "n", 0)).mem, 16);
        ASSERT_INT(ledger_node_shown(node_of(l), card_at(l, "n", 0)).core, 100);
}

static void a_return_to_the_limit_waits_for_what_has_grown(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(ledger_new(&l));
        (void) make_pod(l, "a", 8, 0);
        (void) make_pod(l, "b", 8, 0);
        set_entries(l, 2, BELOW("a", 4, 0) "," ABOVE("b", 3), "");
        ASSERT_INT(reserve(l, "a", 0, 0, &fault), LEDGER_GROWTH_E_ROOM);
        ASSERT_TEXT(fault.text, "gpu0 of node n has 1 of gpu-mem free, 4 more are needed to return to the "
                                "limit: 3 are missing");
        ASSERT_OK(reserve(l, "a", -3, 0, &fault)); /* a part of it */
        ASSERT_INT(ledger_growth_of(node_of(l), STR("a"), 0, 0).mem, -3);
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 3);
        ledger_growth_settle(node_of(l), STR("a"), 3);
        ASSERT_INT(reserve(l, "b", 4, 0, &fault), LEDGER_GROWTH_E_ROOM);
        set_entries(l, 4, BELOW("a", 3, 0), ""); /* b has shrunk */
        ASSERT_OK(reserve(l, "a", 0, 0, &fault));
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 0);
        ASSERT_INT(reserve(l, "b", 1, 0, &fault), LEDGER_GROWTH_E_ROOM); /* it is reserved */
        set_entries(l, 4, BELOW("a", 3, 0), "");                         /* the watch lags */
        ASSERT_INT(reserve(l, "b", 1, 0, &fault), LEDGER_GROWTH_E_ROOM);
        ledger_growth_release(node_of(l), STR("a"));
        ASSERT_OK(reserve(l, "b", 3, 0, &fault));
}

static void a_cordon_keeps_no_slice_from_its_limit(void) {
        static const char cordon[] = ",\"aliquot.dev/cordon-cards\":\"0\"";
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(ledger_new(&l));
        (void) make_pod(l, "a", 8, 0);
        set_entries(l, 2, BELOW("a", 4, 0), cordon);
        ASSERT_FALSE(card_at(l, "n", 0)->healthy);
        ASSERT_INT(reserve(l, "a", 1, 0, &fault), LEDGER_GROWTH_E_ROOM);
        ASSERT_OK(reserve(l, "a", 0, 0, &fault));
}

/* A pod that came without a place may be on any card. The kubelet has room for it and for the
 * limit. */
static void a_return_waits_for_no_pod_with_unknown_cards(void) {
        const GrantSpec pending = {.namespace_ = STR("d"),
                                   .name = STR("p"),
                                   .uid = STR("p"),
                                   .node = STR("n"),
                                   .pending_mem = 6,
                                   .pending_core = 60};
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;
        Grant *p;

        ASSERT_OK(ledger_new(&l));
        set_entries(l, 2, BELOW("a", 4, 30), "");
        (void) make_pod(l, "a", 8, 60);
        ASSERT_OK(grant_new(l, &pending, &p));
        ASSERT_OK(reserve(l, "a", 0, 0, &fault));
        ASSERT_INT(reserve(l, "a", 3, 0, &fault), LEDGER_GROWTH_E_ROOM);
        ASSERT_OK(reserve(l, "a", 2, 0, &fault)); /* 16 - 8 - 6 */
        ledger_growth_release(node_of(l), STR("a"));
        (void) make_pod(l, "b", 4, 0);
        set_entries(l, 3, BELOW("a", 4, 30) "," ABOVE("b", 5), "");
        ASSERT_INT(reserve(l, "a", 0, 0, &fault), LEDGER_GROWTH_E_ROOM); /* b has grown into it */
        ASSERT_TEXT(fault.text, "gpu0 of node n has 3 of gpu-mem free, 4 more are needed to return to the "
                                "limit: 1 are missing");
}

/* Then its limit is free for new pods, and the growth beside it rests on nothing else. */
static void a_pod_that_is_gone_leaves_its_limit_alone(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;
        Grant *a;

        ASSERT_OK(ledger_new(&l));
        a = make_pod(l, "a", 8, 0);
        (void) make_pod(l, "b", 8, 0);
        set_entries(l, 2, BELOW("a", 4, 0) "," ABOVE("b", 4), "");
        (void) grant_free(a);
        ASSERT_INT(card_at(l, "n", 0)->used, 12);
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 0);
        ASSERT_INT(free_for_pods(l), 4);
        ASSERT_INT(reserve(l, "b", 9, 0, &fault), LEDGER_GROWTH_E_ROOM);
        ASSERT_OK(reserve(l, "b", 8, 0, &fault));
        ASSERT_INT(free_for_pods(l), 0);
}

/* Deleted by force: its processes run on with the size in force. */
static void a_held_slice_leaves_what_it_has_given_up(void) {
        static const char held[] =
                ",\"aliquot.dev/held-slices\":\"[{\\\"pod\\\":\\\"d/a\\\",\\\"uid\\\":\\\"a\\\","
                "\\\"allocation\\\":{\\\"0\\\":{\\\"0\\\":8}}}]\"";
        _cleanup_(ledger_freep) Ledger *l = NULL;

        ASSERT_OK(ledger_new(&l));
        (void) make_pod(l, "b", 8, 0);
        set_entries(l, 2, BELOW("a", 4, 0) "," ABOVE("b", 4), held);
        ASSERT_INT(card_at(l, "n", 0)->used, 20);
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 4);
}

static void an_init_container_keeps_the_limit(void) {
        const Slice slices[] = {{.mem = 2, .kind = CONTAINER_INIT}, {.mem = 8}};
        const Slice beside[] = {{.mem = 2, .kind = CONTAINER_SIDECAR}, {.mem = 8}};
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        g = make(l, "a", slices, 2);
        set_entries(l, 2, BELOW("a", 4, 0), "");
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 0);
        (void) grant_free(g);
        (void) make(l, "a", beside, 2);
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 4);
        set_entries(l, 3, BELOW("a", 9, 0), ""); /* of a wrong agent */
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 8);
}

/* As a new leader does. */
static void a_ledger_made_again_has_the_same_sums(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(ledger_new(&l));
        set_entries(l, 5, BELOW("a", 4, 0) "," ABOVE("b", 4), "");
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 0);
        (void) make_pod(l, "b", 8, 0);
        (void) make_pod(l, "a", 8, 0);
        ASSERT_INT(ledger_growth_freed(node_of(l), 0).mem, 4);
        ASSERT_TRUE(ledger_growth_is_below(node_of(l), STR("a")));
        ASSERT_FALSE(ledger_growth_is_below(node_of(l), STR("b")));
        ASSERT_INT(reserve(l, "a", -3, 0, &fault), LEDGER_GROWTH_E_ROOM);
}

static void a_permit_that_is_never_seen_ends(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;
        usec_t now = 1000;

        ASSERT_OK(ledger_new(&l));
        set_entries(l, 1, "", "");
        (void) make_pod(l, "a", 8, 0);
        (void) make_pod(l, "b", 2, 0);
        ASSERT_OK(reserve(l, "a", 4, 0, &fault));
        ledger_growth_settle(node_of(l), STR("a"), 2);
        ASSERT_OK(reserve(l, "b", 1, 0, &fault)); /* its patch is under way */
        ASSERT_TRUE(ledger_growth_expire(node_of(l), now));
        set_entries(l, 0, "", "");
        ASSERT_TRUE(ledger_growth_expire(node_of(l), now += 100 * USEC_PER_SEC)); /* since now */
        ASSERT_TRUE(ledger_growth_expire(node_of(l), now + LEDGER_GROWTH_ABSENT - 1));
        ASSERT_INT(card_at(l, "n", 0)->used, 15);
        set_entries(l, 1, "", ""); /* the watch was behind, and is */
        ASSERT_TRUE(ledger_growth_expire(node_of(l), now += LEDGER_GROWTH_ABSENT));
        set_entries(l, 0, "", "");
        ASSERT_TRUE(ledger_growth_expire(node_of(l), ++now));
        ASSERT_FALSE(ledger_growth_expire(node_of(l), now + LEDGER_GROWTH_ABSENT));
        ASSERT_TRUE(ledger_check(l));
        ASSERT_INT(card_at(l, "n", 0)->used, 11);
        ledger_growth_release(node_of(l), STR("b"));
        ASSERT_INT(card_at(l, "n", 0)->used, 10);
}

int main(void) {
        return TEST_MAIN(
                TEST(a_size_below_the_limit_is_written_as_what_is_less),
                TEST(an_entry_is_above_the_limit_or_below_it), TEST(a_charge_falls_as_far_as_memory_is_free),
                TEST(counters_do_not_take_back_what_was_given_up),
                TEST(a_shrink_frees_for_growth_and_not_for_pods),
                TEST(a_return_to_the_limit_waits_for_what_has_grown),
                TEST(a_return_waits_for_no_pod_with_unknown_cards),
                TEST(a_cordon_keeps_no_slice_from_its_limit), TEST(a_pod_that_is_gone_leaves_its_limit_alone),
                TEST(a_held_slice_leaves_what_it_has_given_up), TEST(an_init_container_keeps_the_limit),
                TEST(a_ledger_made_again_has_the_same_sums), TEST(a_permit_that_is_never_seen_ends));
}
