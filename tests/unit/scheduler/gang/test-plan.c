/* SPDX-License-Identifier: Apache-2.0 */

/* Which members get places in an attempt: surplus members that no node can take, and nodes that
 * were offered before. */

#include "gang-world.h"

/* ---- more members than must be ---- */

/* min-available 2 of three members, with cards for two of them. */
static void begin_elastic(World *w) {
        world_init(w, 2, 1);
        kit_put(&w->gs, w->now, "a", .mem = 6);
        kit_put(&w->gs, w->now, "b", .mem = 6);
        kit_put(&w->gs, w->now, "c", .mem = 6);
        (void) asked_now(w);
        ASSERT_TEXT(filter(w, "b", NULL), "n2");
        ASSERT_TEXT(filter(w, "c", NULL), "no");
        ASSERT_TEXT(w->why, "gang g: no room besides the members that are placed");
}

static void another_member_takes_the_place_of_an_unschedulable_one(void) {
        World w;

        begin_elastic(&w);
        kit_put(&w.gs, w.now, "a", .mem = 6, .message = "0/2 nodes: 2 Insufficient cpu.");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_ASSEMBLING);
        ASSERT_TEXT(rooms, "n1 ");
        ASSERT_TEXT(asked_now(&w), "kick:c "); /* kube-scheduler would not ask again */
        ASSERT_TEXT(filter(&w, "c", NULL), "n1");
        ASSERT_INT(bind_to(&w, "c", "n1"), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "b", "n2"), GANGS_HOLD);
        ASSERT_TEXT(asked_now(&w), "release:b release:c ");
        world_done(&w);
}

/* The cpu came meanwhile. */
static void a_member_that_failed_may_be_placed_after_all(void) {
        World w;

        begin_elastic(&w);
        kit_put(&w.gs, w.now, "a", .mem = 6, .message = "0/2 nodes: 2 Insufficient cpu.");
        ASSERT_TEXT(filter(&w, "a", NULL), "n1");
        ASSERT_INT(bind_to(&w, "a", "n1"), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "b", "n2"), GANGS_HOLD);
        ASSERT_TRUE(strstr(asked_now(&w), "release:a release:b "));
        world_done(&w);
}

static void gives_up_when_too_few_have_not_failed(void) {
        World w;

        begin_elastic(&w);
        ASSERT_INT(bind_to(&w, "b", "n2"), GANGS_HOLD);
        kit_put(&w.gs, w.now, "a", .mem = 6, .message = "0/2 nodes: 2 Insufficient cpu.");
        kit_put(&w.gs, w.now, "a", .mem = 6, .message = "0/2 nodes: 2 Insufficient memory.");
        ASSERT_TEXT(asked_now(&w), "kick:c ");
        kit_put(&w.gs, w.now, "c", .mem = 6, .message = "0/2 nodes: 2 Insufficient cpu.");
        ASSERT_TEXT(asked_now(&w), "give:b ");
        ASSERT_TEXT(why_given, "gang g: member c is unschedulable, see its Events");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_BACKOFF);
        world_done(&w);
}

/* kube-scheduler offers the member no node with a card, and the others are enough. */
static void a_place_that_is_not_offered_is_free_for_others(void) {
        World w;

        world_init(&w, 3, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .where = 1);
        kit_put(&w.gs, w.now, "b", .mem = 6, .where = 2);
        kit_put(&w.gs, w.now, "c", .mem = 6, .where = 3);
        (void) asked_now(&w);
        ASSERT_TEXT(filter(&w, "a", "n1"), "n1");
        ASSERT_INT(bind_to(&w, "a", "n1"), GANGS_HOLD);
        ASSERT_TEXT(filter(&w, "b", "n1"), "no");
        ASSERT_TEXT(w.why, "gang g: no offered node has room for member b");
        ASSERT_INT(all_used(w.ledger), 12);
        ASSERT_INT(bind_to(&w, "c", filter(&w, "c", NULL)), GANGS_HOLD);
        ASSERT_TRUE(strstr(asked_now(&w), "release:a release:c "));
        world_done(&w);
}

/* kube-scheduler does not write the same condition twice, so the second attempt does not hear that
 * the member fails again. */
static void a_member_that_failed_is_planned_last(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 7);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        kit_put(&w.gs, w.now, "c", .mem = 6, .where = 1);
        (void) asked_now(&w);
        ASSERT_TEXT(filter(&w, "b", NULL), "n1");
        ASSERT_INT(all_used(w.ledger), 13); /* a goes before c */
        kit_put(&w.gs, w.now, "a", .mem = 7, .message = "0/2 nodes: 2 Insufficient cpu.");
        w.now += GANGS_IDLE;
        (void) asked_now(&w);
        w.now += GANGS_BACKOFF;
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "c", filter(&w, "c", NULL)), GANGS_HOLD);
        ASSERT_TRUE(strstr(asked_now(&w), "release:b release:c "));
        world_done(&w);
}

/* Kept for its turn, it would have the only node that it may use. */
static void a_member_that_failed_gets_the_only_node_that_suits_it(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .where = 1);
        kit_put(&w.gs, w.now, "b", .mem = 6, .where = 2);
        (void) asked_now(&w);
        ASSERT_TEXT(filter(&w, "a", "n1"), "n1");
        kit_put(&w.gs, w.now, "a", .mem = 6, .where = 1, .message = "0/2 nodes: 2 Insufficient cpu.");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_BACKOFF);
        w.now += GANGS_BACKOFF;
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", "n1")), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
        ASSERT_TRUE(strstr(asked_now(&w), "release:a release:b "));
        world_done(&w);
}

/* A node is judged in the order of the ledger, and takes the first member that fits. */
static void a_member_that_failed_does_not_make_the_gang_too_large(void) {
        World w;

        world_init(&w, 1, 1);
        kit_node(w.ledger, "n2", 1, 4);
        kit_put(&w.gs, w.now, "a", .mem = 8);
        kit_put(&w.gs, w.now, "b", .mem = 4);
        (void) asked_now(&w);
        ASSERT_TEXT(filter(&w, "a", NULL), "n1");
        kit_put(&w.gs, w.now, "a", .mem = 8, .message = "0/2 nodes: 2 Insufficient cpu.");
        gangs_nodes_changed(&w.gs);
        w.now += GANGS_BACKOFF;
        (void) asked_now(&w);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_ASSEMBLING);
        world_done(&w);
}

/* ---- what was offered before ---- */

/* The launcher is asked about first. Each worker needs a whole card. */
static void begin_with_launcher(World *w, unsigned n_nodes) {
        world_init(w, n_nodes, 1);
        kit_put(&w->gs, w->now, "launcher", .mem = 1, .where = 1, .min = "3");
        kit_put(&w->gs, w->now, "w1", .mem = 9, .where = 2, .min = "3");
        kit_put(&w->gs, w->now, "w2", .mem = 9, .where = 2, .min = "3");
        (void) asked_now(w);
        ASSERT_INT(bind_to(w, "launcher", filter(w, "launcher", NULL)), GANGS_HOLD);
}

/* In the first attempt only n1 has cpu for the workers. */
static void a_node_that_was_not_offered_before_may_be_now(void) {
        World w;

        begin_with_launcher(&w, 3);
        ASSERT_INT(bind_to(&w, "w1", filter(&w, "w1", "n1")), GANGS_HOLD);
        ASSERT_TEXT(filter(&w, "w2", "n1"), "no");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_BACKOFF);
        w.now += GANGS_BACKOFF;
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "launcher", filter(&w, "launcher", NULL)), GANGS_HOLD);
        ASSERT_INT(all_used(w.ledger), 19);
        ASSERT_INT(bind_to(&w, "w1", filter(&w, "w1", NULL)), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "w2", filter(&w, "w2", NULL)), GANGS_HOLD);
        ASSERT_TRUE(strstr(asked_now(&w), "release:launcher release:w1 release:w2 "));
        world_done(&w);
}

/* Even without that kind the second plan finds too little room. */
static void the_second_plan_may_fall_short_too(void) {
        World w;

        begin_with_launcher(&w, 2);
        ASSERT_TEXT(filter(&w, "w1", "n1"), "n1");
        ASSERT_OK(ledger_node_set_fenced(w.ledger, STR("n2"), &(uint32_t){0}, 1));
        ASSERT_TEXT(filter(&w, "w2", "n1"), "no");
        w.now += GANGS_BACKOFF;
        (void) asked_now(&w);
        ASSERT_TEXT(filter(&w, "launcher", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: the cluster has room for 2 of 3 members");
        ASSERT_INT(all_used(w.ledger), 0);
        world_done(&w);
}

static const GangKind *kind_of(World *w, const char *uid) {
        GangMember *m = gang_table_find(&w->gs.table, str_from(uid));

        return gang_table_kind(m->gang, m);
}

static void a_new_node_may_suit_all_kinds(void) {
        World w;

        world_init(&w, 2, 1);
        gangs_nodes_changed(&w.gs);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        (void) filter(&w, "a", NULL);
        gangs_nodes_changed(&w.gs); /* a condition of a node, as its heartbeat */
        ASSERT_TRUE(kind_of(&w, "a")->known);
        kit_node(w.ledger, "n3", 1, 10);
        gangs_nodes_changed(&w.gs);
        ASSERT_FALSE(kind_of(&w, "a")->known);
        world_done(&w);
}

/* ---- too large ---- */

/* Each member of another size than all others, and too large for a card. */
static void too_many_kinds_and_nodes_are_not_judged(void) {
        enum { MEMBERS = 500, FEW_NODES = 150, MANY_NODES = 300 };

        for (unsigned n = FEW_NODES; n <= MANY_NODES; n += MANY_NODES - FEW_NODES) {
                World w;

                world_init(&w, n, 1);
                for (unsigned i = 0; i < MEMBERS; i++) {
                        char name[16];

                        (void) snprintf(name, sizeof name, "p%u", i);
                        kit_put(&w.gs, w.now, name, .mem = 11 + i, .min = "500");
                }
                (void) asked_now(&w);
                ASSERT_INT(state_of_gang(&w, "g"), n == FEW_NODES ? GANG_READY : GANG_ASSEMBLING);
                world_done(&w);
        }
}

/* More kinds than it is kept for what they were offered. */
static void equal_requests_of_many_kinds_are_counted_once_each(void) {
        enum { MEMBERS = 40 };
        World w;

        world_init(&w, MEMBERS - 1, 1);
        for (unsigned i = 0; i < MEMBERS; i++) {
                char name[16];

                (void) snprintf(name, sizeof name, "p%u", i);
                kit_put(&w.gs, w.now, name, .mem = 6 + i % 2, .where = i, .min = "40");
        }
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_TEXT(told, "GangWaiting gang g: the cluster has cards for 39 of 40 even when empty");
        world_done(&w);
}

/* ---- the time of an attempt ---- */

/* At 100 Bindings a second all are written 40 s after the first Bind at the latest. */
static void a_large_gang_has_less_time_to_assemble(void) {
        static const struct {
                unsigned members;
                usec_t time;
        } cases[] = {{2, 30000 * USEC_PER_MSEC},
                     {1000, 30000 * USEC_PER_MSEC},
                     {1001, 29990 * USEC_PER_MSEC},
                     {1024, 29760 * USEC_PER_MSEC}};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char min[16];
                World w;

                world_init(&w, 1, 1);
                (void) snprintf(min, sizeof min, "%u", cases[i].members);
                for (unsigned k = 0; k < cases[i].members; k++) {
                        char name[16];

                        (void) snprintf(name, sizeof name, "p%u", k);
                        kit_put(&w.gs, w.now, name, .min = min);
                }
                (void) asked_now(&w);
                ASSERT_INT(bind_to(&w, "p0", "n1"), GANGS_HOLD);
                w.now += cases[i].time - 1;
                gangs_active(&w.gs, w.now);
                (void) filter(&w, "p1", NULL);
                ASSERT_TEXT(asked_now(&w), "");
                w.now++;
                ASSERT_TEXT(asked_now(&w), "give:p0 ");
                world_done(&w);
        }
        ASSERT_TEXT(told, "GangWaiting gang g: 1 of 1024 members were placed in 29 s");
}

int main(void) {
        return TEST_MAIN(TEST(another_member_takes_the_place_of_an_unschedulable_one),
                         TEST(a_member_that_failed_may_be_placed_after_all),
                         TEST(gives_up_when_too_few_have_not_failed),
                         TEST(a_place_that_is_not_offered_is_free_for_others),
                         TEST(a_member_that_failed_is_planned_last),
                         TEST(a_member_that_failed_gets_the_only_node_that_suits_it),
                         TEST(a_member_that_failed_does_not_make_the_gang_too_large),
                         TEST(a_node_that_was_not_offered_before_may_be_now),
                         TEST(the_second_plan_may_fall_short_too), TEST(a_new_node_may_suit_all_kinds),
                         TEST(too_many_kinds_and_nodes_are_not_judged),
                         TEST(equal_requests_of_many_kinds_are_counted_once_each),
                         TEST(a_large_gang_has_less_time_to_assemble));
}
