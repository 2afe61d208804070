/* SPDX-License-Identifier: Apache-2.0 */

/* One gang after another, by hand: who is asked for what, and what is held. */

#include "failing.h"
#include "gang-world.h"

/* ---- the way to satisfied ---- */

static void holds_until_all_are_there(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .gated = true);
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_WAITING);
        kit_put(&w.gs, w.now, "b", .mem = 6, .gated = true);
        ASSERT_TEXT(asked_now(&w), "ungate:a ungate:b ");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_ASSEMBLING);
        ASSERT_TEXT(filter(&w, "a", NULL), "n1");
        ASSERT_INT(all_used(w.ledger), 12); /* the whole plan is charged */
        ASSERT_INT(bind_to(&w, "a", "n1"), GANGS_HOLD);
        ASSERT_TRUE(gangs_is_unbound(&w.gs, STR("a")));
        ASSERT_TEXT(filter(&w, "b", NULL), "n2");
        ASSERT_INT(bind_to(&w, "b", "n1"), GANGS_REFUSE);
        ASSERT_INT(bind_to(&w, "b", "n2"), GANGS_HOLD);
        ASSERT_TEXT(asked_now(&w), "release:a release:b ");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_SATISFIED);
        gangs_bind_ended(&w.gs, STR("a"), true, w.now);
        gangs_bind_ended(&w.gs, STR("b"), true, w.now);
        ASSERT_TRUE(gang_table_find(&w.gs.table, STR("a"))->gang->whole);
        ASSERT_TEXT(rooms, ""); /* the pods' own grants are there instead */
        world_done(&w);
}

static void members_without_cards_count(void) {
        World w;

        world_init(&w, 1, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "ps");
        ASSERT_TEXT(asked_now(&w), "kick:a kick:ps ");
        ASSERT_TEXT(filter(&w, "ps", NULL), "free");
        ASSERT_INT(bind_to(&w, "ps", "other"), GANGS_HOLD);
        ASSERT_TEXT(filter(&w, "a", NULL), "n1");
        ASSERT_INT(bind_to(&w, "a", "n1"), GANGS_HOLD);
        ASSERT_TEXT(asked_now(&w), "release:a release:ps ");
        world_done(&w);
}

static void later_members_are_single_pods(void) {
        World w;

        world_init(&w, 3, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        kit_put(&w.gs, w.now, "c", .mem = 6);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
        ASSERT_TEXT(asked_now(&w), "release:a release:b ");
        ASSERT_INT(all_used(w.ledger), 6); /* c keeps its place */
        ASSERT_INT(bind_to(&w, "c", filter(&w, "c", NULL)), GANGS_TAKE);
        w.now += GANGS_ATTEMPT;
        (void) asked_now(&w);
        ASSERT_INT(all_used(w.ledger), 0);
        ASSERT_TEXT(rooms, "n3 ");
        ASSERT_TEXT(filter(&w, "c", NULL), "free");
        kit_put(&w.gs, w.now, "d", .mem = 6, .gated = true);
        ASSERT_TRUE(strstr(asked_now(&w), "ungate:d "));
        world_done(&w);
}

/* ---- turns ---- */

static void one_gang_at_a_time(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "x1", .gang = "x", .mem = 6, .created = "2026-11-23T00:00:02Z");
        kit_put(&w.gs, w.now, "x2", .gang = "x", .mem = 6, .created = "2026-11-23T00:00:02Z");
        kit_put(&w.gs, w.now, "a", .mem = 6, .created = "2026-11-23T00:00:01Z");
        kit_put(&w.gs, w.now, "b", .mem = 6, .created = "2026-11-23T00:00:01Z");
        (void) asked_now(&w);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_ASSEMBLING); /* the older one */
        ASSERT_INT(state_of_gang(&w, "x"), GANG_READY);
        ASSERT_TEXT(filter(&w, "x1", NULL), "no");
        ASSERT_TEXT(w.why, "gang x waits for its turn");
        ASSERT_INT(bind_to(&w, "x1", "n1"), GANGS_REFUSE);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
        (void) asked_now(&w);
        ASSERT_INT(state_of_gang(&w, "x"), GANG_ASSEMBLING);
        world_done(&w);
}

static void priority_goes_before_age(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .created = "2026-11-23T00:00:01Z");
        kit_put(&w.gs, w.now, "b", .mem = 6);
        kit_put(&w.gs, w.now, "x1", .gang = "x", .mem = 6, .priority = 5);
        kit_put(&w.gs, w.now, "x2", .gang = "x", .mem = 6, .priority = 5);
        (void) asked_now(&w);
        ASSERT_INT(state_of_gang(&w, "x"), GANG_ASSEMBLING);
        world_done(&w);
}

/* Asks as kube-scheduler does about pods of others. */
static void pass_time(World *w, usec_t time) {
        for (usec_t end = w->now + time; w->now < end; w->now += USEC_PER_SEC) {
                gangs_active(&w->gs, w->now);
                (void) asked_now(w);
        }
}

/* Attempts that fail, also of older gangs, do not keep a gang from its turn. */
static void who_waits_longer_is_next(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .created = "2026-11-23T00:00:01Z");
        kit_put(&w.gs, w.now, "b", .mem = 6, .created = "2026-11-23T00:00:01Z");
        (void) asked_now(&w);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_ASSEMBLING);
        w.now += USEC_PER_SEC;
        for (const char *const *gang = (const char *const[]){"x", "y", NULL}; *gang; gang++) {
                char name[8];

                for (int i = 1; i <= 2; i++) {
                        (void) snprintf(name, sizeof name, "%s%d", *gang, i);
                        kit_put(&w.gs, w.now, name, .gang = *gang, .mem = 6);
                }
        }
        pass_time(&w, GANGS_BUSY);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_BACKOFF);
        ASSERT_INT(state_of_gang(&w, "x"), GANG_ASSEMBLING);
        pass_time(&w, GANGS_BUSY);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_READY);
        ASSERT_INT(state_of_gang(&w, "y"), GANG_ASSEMBLING);
        pass_time(&w, GANGS_BUSY);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_ASSEMBLING);
        world_done(&w);
}

/* ---- giving up ---- */

static void gives_up_when_nothing_is_offered(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        w.now += GANGS_IDLE - 1;
        ASSERT_TEXT(asked_now(&w), "");
        gangs_active(&w.gs, w.now);
        w.now += GANGS_IDLE - 1;
        ASSERT_TEXT(asked_now(&w), "");
        w.now += 1;
        ASSERT_TEXT(asked_now(&w), "give:a ");
        ASSERT_TEXT(why_given, "gang g: kube-scheduler placed 1 of 2 members");
        ASSERT_TEXT(told, "GangWaiting gang g: kube-scheduler placed 1 of 2 members");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_BACKOFF);
        ASSERT_INT(all_used(w.ledger), 0);
        ASSERT_TEXT(rooms, "n1 n2 ");
        ASSERT_TEXT(filter(&w, "a", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: kube-scheduler placed 1 of 2 members");
        w.now += GANGS_BACKOFF - 1;
        ASSERT_TEXT(asked_now(&w), "");
        w.now += 1;
        ASSERT_TEXT(asked_now(&w), "kick:a kick:b ");
        world_done(&w);
}

/* kube-scheduler asks about other pods all the time. */
static void gives_up_on_a_busy_cluster(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        for (usec_t end = w.now + GANGS_BUSY - USEC_PER_SEC; w.now < end;) {
                w.now += USEC_PER_SEC;
                gangs_active(&w.gs, w.now);
                ASSERT_TEXT(asked_now(&w), "");
        }
        w.now += USEC_PER_SEC;
        gangs_active(&w.gs, w.now);
        ASSERT_TEXT(asked_now(&w), "give:a ");
        ASSERT_TEXT(why_given, "gang g: kube-scheduler placed 1 of 2 members");
        world_done(&w);
}

static void waits_longer_after_each_failure(void) {
        usec_t wait = GANGS_BACKOFF;
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        for (int i = 0; i < 9; i++) {
                ASSERT_TEXT(asked_now(&w), "kick:a kick:b ");
                w.now += GANGS_IDLE;
                ASSERT_TEXT(asked_now(&w), "");
                w.now += wait - 1;
                ASSERT_TEXT(asked_now(&w), "");
                w.now += 1;
                wait = wait * 2 < GANGS_BACKOFF_CAP ? wait * 2 : GANGS_BACKOFF_CAP;
        }
        world_done(&w);
}

static void gives_up_at_the_end_of_its_time(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        for (int i = 1; i <= 29; i++) {
                w.now += USEC_PER_SEC;
                (void) filter(&w, "b", NULL);
                ASSERT_TEXT(asked_now(&w), "");
        }
        w.now += USEC_PER_SEC;
        (void) filter(&w, "b", NULL);
        ASSERT_TEXT(asked_now(&w), "give:a ");
        ASSERT_TEXT(why_given, "gang g: 1 of 2 members were placed in 30 s");
        world_done(&w);
}

static void gives_up_when_a_member_is_unschedulable(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        /* A late one, from before its turn. */
        kit_put(&w.gs, w.now, "b", .mem = 6, .message = "0/2 nodes: 2 gang g waits for its turn.");
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_TEXT(filter(&w, "unseen", NULL), "no"); /* nor are the words about a pod not seen yet */
        kit_put(&w.gs, w.now, "b", .mem = 6, .message = w.why);
        ASSERT_TEXT(asked_now(&w), "");
        kit_put(&w.gs, w.now, "b", .mem = 6, .message = "0/2 nodes: 2 Insufficient cpu.");
        ASSERT_TEXT(asked_now(&w), "give:a ");
        ASSERT_TEXT(why_given, "gang g: member b is unschedulable, see its Events");
        world_done(&w);
}

static void gives_up_when_members_are_deleted(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        gangs_pod_gone(&w.gs, STR("b"), w.now);
        ASSERT_TEXT(asked_now(&w), "give:a ");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_WAITING);
        ASSERT_INT(all_used(w.ledger), 0);
        kit_put(&w.gs, w.now, "b2", .mem = 6);
        ASSERT_TEXT(asked_now(&w), "kick:a kick:b2 ");
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        gangs_pod_gone(&w.gs, STR("a"), w.now); /* the held one itself */
        ASSERT_TEXT(asked_now(&w), "give:a ");
        gangs_pod_gone(&w.gs, STR("b2"), w.now);
        ASSERT_TRUE(!w.gs.table.gangs && !w.gs.assembling);
        world_done(&w);
}

static void gives_up_when_leadership_ends(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        gangs_set_leading(&w.gs, false, w.now);
        ASSERT_TEXT(asked_now(&w), "give:a ");
        ASSERT_INT(all_used(w.ledger), 0);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_READY);
        gangs_set_leading(&w.gs, true, w.now);
        ASSERT_TEXT(asked_now(&w), "kick:a kick:b ");
        world_done(&w);
}

static void gives_up_when_a_card_goes(void) {
        const uint32_t card = 0;
        World w;

        world_init(&w, 3, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .where = 1);
        kit_put(&w.gs, w.now, "b", .mem = 6, .where = 2);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", "n1")), GANGS_HOLD);
        /* A place that is not held is made anew. */
        ASSERT_OK(ledger_node_set_fenced(w.ledger, STR("n2"), &card, 1));
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_TEXT(filter(&w, "b", NULL), "n3");
        ASSERT_OK(ledger_node_set_fenced(w.ledger, STR("n1"), &card, 1));
        ASSERT_TEXT(asked_now(&w), "give:a ");
        world_done(&w);
}

/* ---- room ---- */

static void all_or_nothing(void) {
        World w;
        Grant *other;

        world_init(&w, 2, 1);
        ASSERT_OK(grant_new(w.ledger,
                            &(GrantSpec){.namespace_ = STR("x"),
                                         .name = STR("x"),
                                         .uid = STR("x"),
                                         .node = STR("n2"),
                                         .slices = &(Slice){.mem = 6},
                                         .n_slices = 1},
                            &other));
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        ASSERT_TEXT(filter(&w, "a", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: the cluster has room for 1 of 2 members");
        ASSERT_INT(all_used(w.ledger), 6);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_BACKOFF);
        grant_free(other);
        w.now += GANGS_BACKOFF;
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        world_done(&w);
}

static void too_large_for_the_cluster_is_not_tried(void) {
        World w;

        world_init(&w, 2, 1);
        for (unsigned i = 0; i < 3; i++) {
                char name[8];

                (void) snprintf(name, sizeof name, "p%u", i);
                kit_put(&w.gs, w.now, name, .mem = 6, .min = "3");
        }
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_TEXT(told, "GangWaiting gang g: the cluster has cards for 2 of 3 even when empty");
        ASSERT_TEXT(filter(&w, "p0", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: the cluster has cards for 2 of 3 even when empty");
        w.now += 10 * GANGS_BACKOFF;
        ASSERT_TEXT(asked_now(&w), "");
        kit_node(w.ledger, "n3", 1, 10);
        gangs_nodes_changed(&w.gs);
        w.now += GANGS_BACKOFF;
        ASSERT_TEXT(asked_now(&w), "kick:p0 kick:p1 kick:p2 ");
        world_done(&w);
}

/* The user lowers min-available, or makes the pods smaller, while no node changes. */
static void is_judged_again_when_its_members_change(void) {
        static const char *const names[] = {"a", "b", "c"};
        World w;

        world_init(&w, 2, 1);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                kit_put(&w.gs, w.now, names[i], .mem = 6, .min = "3");
        ASSERT_TEXT(asked_now(&w), "");
        w.now += GANGS_BACKOFF;
        ASSERT_TEXT(asked_now(&w), "");
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                kit_put(&w.gs, w.now, names[i], .mem = 6, .min = "2");
        ASSERT_TEXT(asked_now(&w), "kick:a kick:b kick:c ");
        world_done(&w);

        world_init(&w, 2, 1);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                kit_put(&w.gs, w.now, names[i], .mem = 6, .min = "3");
        ASSERT_TEXT(asked_now(&w), "");
        gangs_pod_gone(&w.gs, STR("c"), w.now);
        kit_put(&w.gs, w.now, "d", .mem = 4, .min = "3");
        w.now += GANGS_BACKOFF;
        ASSERT_TEXT(asked_now(&w), "kick:a kick:b kick:d ");
        world_done(&w);
}

/* kube-scheduler does not offer the node of the plan any more: it has no cpu left. */
static void moves_a_place(void) {
        World w;

        world_init(&w, 3, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .where = 7);
        kit_put(&w.gs, w.now, "b", .mem = 6, .where = 7);
        (void) asked_now(&w);
        ASSERT_TEXT(filter(&w, "a", NULL), "n1");
        ASSERT_TEXT(filter(&w, "a", "n2"), "n2"); /* exchanged with b */
        ASSERT_INT(bind_to(&w, "a", "n2"), GANGS_HOLD);
        ASSERT_TEXT(rooms, "");
        ASSERT_TEXT(filter(&w, "b", "n3"), "n3"); /* moved */
        ASSERT_TEXT(rooms, "n1 ");
        ASSERT_INT(all_used(w.ledger), 12);
        ASSERT_TEXT(filter(&w, "b", "n2"), "no");
        ASSERT_TEXT(w.why, "gang g: no offered node has room for member b");
        ASSERT_TEXT(asked_now(&w), "give:a ");
        world_done(&w);
}

/* A has all of n1, and c all of n2, until kube-scheduler finds no cpu for c. */
static void free_n2(World *w) {
        kit_put(&w->gs, w->now, "c", .mem = 5, .where = 7);
        (void) asked_now(w);
        ASSERT_INT(bind_to(w, "a", filter(w, "a", NULL)), GANGS_HOLD);
        ASSERT_TEXT(filter(w, "b", "n1"), "no");
        (void) filter(w, "d", NULL);
        ASSERT_TEXT(filter(w, "c", NULL), "n2");
        kit_put(&w->gs, w->now, "c", .mem = 5, .where = 7, .message = "0/2 nodes: 2 Insufficient cpu.");
}

static void wakes_the_member_that_fits_a_freed_place(void) {
        World w;

        world_init(&w, 1, 1);
        kit_node(w.ledger, "n2", 1, 5);
        kit_put(&w.gs, w.now, "a", .mem = 10);
        kit_put(&w.gs, w.now, "b", .mem = 10); /* too large for n2 */
        kit_put(&w.gs, w.now, "d", .mem = 4);
        free_n2(&w);
        ASSERT_TEXT(asked_now(&w), "kick:d ");
        ASSERT_INT(bind_to(&w, "d", filter(&w, "d", NULL)), GANGS_HOLD);
        ASSERT_TEXT(asked_now(&w), "release:a release:d ");
        world_done(&w);
}

static void wakes_the_member_that_was_offered_the_node(void) {
        World w;

        world_init(&w, 1, 1);
        kit_node(w.ledger, "n2", 1, 5);
        kit_put(&w.gs, w.now, "a", .mem = 10);
        kit_put(&w.gs, w.now, "b", .mem = 4, .where = 8); /* can use n1 alone */
        kit_put(&w.gs, w.now, "d", .mem = 4, .where = 9);
        free_n2(&w);
        ASSERT_TEXT(asked_now(&w), "kick:d ");
        world_done(&w);
}

static void wakes_none_that_does_not_fit(void) {
        World w;

        world_init(&w, 1, 1);
        kit_node(w.ledger, "n2", 1, 5);
        kit_put(&w.gs, w.now, "a", .mem = 10);
        kit_put(&w.gs, w.now, "b", .mem = 10);
        free_n2(&w);
        ASSERT_TEXT(asked_now(&w), "");
        world_done(&w);
}

/* What was offered in the first attempt guides the plan of the second one. */
static void learns_which_nodes_suit(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .where = 7);
        kit_put(&w.gs, w.now, "b", .mem = 6, .where = 8);
        (void) asked_now(&w);
        ASSERT_TEXT(filter(&w, "a", NULL), "n1");
        ASSERT_TEXT(filter(&w, "b", "n1"), "no"); /* b can use n1 alone */
        w.now += GANGS_BACKOFF;
        (void) asked_now(&w);
        ASSERT_TEXT(filter(&w, "a", NULL), "n2");
        ASSERT_TEXT(filter(&w, "b", "n1"), "n1");
        world_done(&w);
}

/* ---- after a restart, and repair ---- */

static void repairs_what_is_half_bound(void) {
        World w;

        world_init(&w, 3, 1);
        kit_put(&w.gs, w.now, "x1", .gang = "x", .mem = 6, .priority = 5);
        kit_put(&w.gs, w.now, "x2", .gang = "x", .mem = 6, .priority = 5);
        kit_put(&w.gs, w.now, "a", .mem = 6, .min = "3", .bound = true);
        kit_put(&w.gs, w.now, "b", .mem = 6, .min = "3");
        ASSERT_INT(state_of_gang(&w, "g"), GANG_REPAIR);
        ASSERT_TEXT(asked_now(&w), "kick:x1 kick:x2 "); /* c does not exist yet */
        ASSERT_TEXT(filter(&w, "b", NULL), "no");
        ASSERT_TEXT(w.why, "gang g waits for members: 2 of 3, 1 are bound");
        gangs_set_leading(&w.gs, false, w.now);
        kit_put(&w.gs, w.now, "c", .mem = 6, .min = "3");
        ASSERT_TEXT(filter(&w, "b", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: 1 of 3 bound, an attempt was cut off; 2 more go first");
        gangs_set_leading(&w.gs, true, w.now);
        ASSERT_TEXT(asked_now(&w), "kick:b kick:c ");
        ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "c", filter(&w, "c", NULL)), GANGS_HOLD);
        ASSERT_TRUE(strstr(asked_now(&w), "release:b release:c "));
        world_done(&w);
}

static void a_binding_that_fails_is_repaired(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
        (void) asked_now(&w);
        gangs_bind_ended(&w.gs, STR("a"), true, w.now);
        gangs_bind_ended(&w.gs, STR("b"), false, w.now);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_REPAIR);
        ASSERT_TEXT(filter(&w, "b", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: 1 of 2 bound, a Binding was refused; 1 more go first");
        w.now += GANGS_BACKOFF;
        ASSERT_TEXT(asked_now(&w), "kick:b ");
        ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
        ASSERT_TEXT(asked_now(&w), "release:b ");
        gangs_bind_ended(&w.gs, STR("b"), true, w.now);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_SATISFIED);
        world_done(&w);
}

/* Three members, of which a is bound, the Binding of b is under way, and that of c was refused. */
static void begin_repair(World *w, unsigned mem_b, unsigned mem_c) {
        const char *node;

        kit_put(&w->gs, w->now, "a", .mem = 6, .min = "3");
        kit_put(&w->gs, w->now, "b", .mem = mem_b, .min = "3");
        kit_put(&w->gs, w->now, "c", .mem = mem_c, .min = "3");
        (void) asked_now(w);
        for (unsigned i = 0; i < 3; i++) {
                const char uid[] = {(char) ('a' + i), '\0'};

                node = filter(w, uid, NULL);
                ASSERT_INT(bind_to(w, uid, strcmp(node, "free") != 0 ? node : "n1"), GANGS_HOLD);
        }
        gangs_bind_ended(&w->gs, STR("a"), true, w->now);
        gangs_bind_ended(&w->gs, STR("c"), false, w->now);
        w->now += GANGS_BACKOFF;
        (void) asked_now(w);
        ASSERT_INT(state_of_gang(w, "g"), GANG_ASSEMBLING);
}

static void a_binding_under_way_has_no_second_place(void) {
        World w;

        world_init(&w, 3, 1);
        begin_repair(&w, 6, 6);
        ASSERT_INT(bind_to(&w, "c", filter(&w, "c", NULL)), GANGS_HOLD);
        ASSERT_INT(all_used(w.ledger), 0); /* that of c became its own grant */
        world_done(&w);
}

static void a_binding_under_way_is_no_room(void) {
        const uint32_t card = 0;
        World w;

        world_init(&w, 2, 1);
        begin_repair(&w, 0, 6);
        for (int i = 0; i < 2; i++)
                ASSERT_OK(ledger_node_set_fenced(w.ledger, i == 0 ? STR("n1") : STR("n2"), &card, 1));
        ASSERT_TEXT(filter(&w, "c", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: the cluster has room for 0 of 1 members");
        gangs_nodes_changed(&w.gs);
        w.now += GANGS_BACKOFF_CAP;
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_TEXT(filter(&w, "c", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: the cluster has cards for 0 of 1 even when empty");
        world_done(&w);
}

/* The API server refuses the Bindings again and again: the attempts become rarer. */
static void refused_bindings_wait_longer_each_time(void) {
        usec_t wait = GANGS_BACKOFF;
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        for (int i = 0; i < 3; i++, wait *= 2) {
                ASSERT_TEXT(asked_now(&w), "kick:a kick:b ");
                ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
                ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
                ASSERT_TEXT(asked_now(&w), "release:a release:b ");
                gangs_bind_ended(&w.gs, STR("a"), false, w.now);
                gangs_bind_ended(&w.gs, STR("b"), false, w.now);
                w.now += wait - 1;
                ASSERT_TEXT(asked_now(&w), "");
                w.now += 1;
        }
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
        gangs_bind_ended(&w.gs, STR("a"), true, w.now);
        gangs_bind_ended(&w.gs, STR("b"), true, w.now);
        ASSERT_INT(gang_table_find(&w.gs.table, STR("a"))->gang->failures, 0);
        world_done(&w);
}

static void once_satisfied_stays_so(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .bound = true);
        kit_put(&w.gs, w.now, "b", .mem = 6, .bound = true);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_SATISFIED);
        gangs_pod_gone(&w.gs, STR("a"), w.now);
        kit_put(&w.gs, w.now, "a2", .mem = 6, .gated = true);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_SATISFIED);
        ASSERT_TEXT(asked_now(&w), "ungate:a2 ");
        ASSERT_TEXT(filter(&w, "a2", NULL), "free");
        world_done(&w);
}

/* A new process does not know that a gang was whole. */
static void after_a_restart_a_reduced_gang_is_whole(void) {
        World w;

        world_init(&w, 4, 1);
        gangs_list_begin(&w.gs);
        kit_put(&w.gs, w.now, "a", .mem = 6, .min = "3", .bound = true);
        kit_put(&w.gs, w.now, "b", .mem = 6, .min = "3", .gated = true);
        kit_put(&w.gs, w.now, "x1", .gang = "x", .mem = 6, .bound = true);
        kit_put(&w.gs, w.now, "x2", .gang = "x", .mem = 6);
        gangs_list_end(&w.gs, w.now);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_SATISFIED);
        ASSERT_INT(state_of_gang(&w, "x"), GANG_REPAIR); /* it has enough members */
        ASSERT_TRUE(strstr(asked_now(&w), "ungate:b "));
        gangs_list_begin(&w.gs); /* only the first list */
        kit_put(&w.gs, w.now, "a", .mem = 6, .min = "3", .bound = true);
        kit_put(&w.gs, w.now, "y", .gang = "y", .mem = 6, .bound = true);
        gangs_list_end(&w.gs, w.now);
        ASSERT_INT(state_of_gang(&w, "y"), GANG_REPAIR);
        world_done(&w);
}

static void a_gate_stays_until_its_patch_is_good(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .bound = true);
        kit_put(&w.gs, w.now, "b", .mem = 6, .bound = true);
        kit_put(&w.gs, w.now, "c", .gated = true);
        patches_stay = true;
        ASSERT_TRUE(gangs_step(&w.gs, w.now));
        ASSERT_TEXT(asked_now(&w), "ungate:c ");
        w.now += GANGS_WAKE_AGAIN;
        ASSERT_TEXT(asked_now(&w), ""); /* its patch is under way */
        gangs_woken(&w.gs, STR("c"), false, w.now);
        ASSERT_TRUE(gangs_step(&w.gs, w.now));
        ASSERT_TEXT(asked_now(&w), "ungate:c ");
        gangs_woken(&w.gs, STR("c"), true, w.now);
        kit_put(&w.gs, w.now, "c");
        ASSERT_FALSE(gangs_step(&w.gs, w.now));
        world_done(&w);
}

/* The API server refuses the patches, or another program keeps the gate: they become rarer. When
 * the gate has gone, a later patch waits no longer than the first. */
static void refused_patches_become_rarer(void) {
        World w;

        for (int good = 0; good < 2; good++) {
                unsigned n = 0;

                world_init(&w, 2, 1);
                kit_put(&w.gs, w.now, "a", .mem = 6, .bound = true);
                kit_put(&w.gs, w.now, "b", .mem = 6, .bound = true);
                patches_stay = true;
                for (unsigned second = 0; second < 600; second++, w.now += USEC_PER_SEC) {
                        kit_put(&w.gs, w.now, "c", .gated = true, .message = second % 2 ? "x" : "y");
                        if (asked_now(&w)[0] == '\0')
                                continue;
                        n++;
                        gangs_woken(&w.gs, STR("c"), good, w.now);
                }
                ASSERT_INT(n, 10); /* at 0, 1, 3, 7, 15, 31, 63, 127, 255 and 511 s */
                kit_put(&w.gs, w.now, "c");
                ASSERT_INT(gang_table_find(&w.gs.table, STR("c"))->wakes, 0);
                world_done(&w);
        }
}

/* A patch of a member without a gate. */
static void a_kick_that_failed_is_repeated(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .bound = true);
        kit_put(&w.gs, w.now, "b", .mem = 6, .bound = true);
        kit_put(&w.gs, w.now, "c");
        patches_stay = true;
        ASSERT_TEXT(asked_now(&w), "kick:c ");
        gangs_woken(&w.gs, STR("c"), false, w.now);
        ASSERT_TRUE(gangs_step(&w.gs, w.now));
        w.now += GANGS_WAKE_AGAIN;
        ASSERT_TEXT(asked_now(&w), "kick:c ");
        gangs_woken(&w.gs, STR("c"), true, w.now);
        ASSERT_FALSE(gangs_step(&w.gs, w.now));
        world_done(&w);
}

/* The right to patch was missing for long. A single failure does not cost the next attempt. */
static void a_patch_is_repeated_within_the_attempt(void) {
        for (int gated = 0; gated < 2; gated++) {
                World w;

                world_init(&w, 2, 1);
                kit_put(&w.gs, w.now, "a", .mem = 6, .gated = gated > 0);
                kit_put(&w.gs, w.now, "b", .mem = 6, .gated = gated > 0);
                gang_table_find(&w.gs.table, STR("b"))->wakes = 8;
                patches_stay = true;
                ASSERT_TEXT(asked_now(&w), gated ? "ungate:a ungate:b " : "kick:a kick:b ");
                gangs_woken(&w.gs, STR("a"), true, w.now);
                kit_put(&w.gs, w.now, "a", .mem = 6);
                gangs_woken(&w.gs, STR("b"), false, w.now);
                w.now += GANGS_WAKE_AGAIN;
                ASSERT_TEXT(asked_now(&w), gated ? "ungate:b " : "kick:b ");
                world_done(&w);
        }
}

static void a_slow_patch_is_not_repeated(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .gated = true);
        kit_put(&w.gs, w.now, "b", .mem = 6, .gated = true);
        patches_stay = true;
        ASSERT_TEXT(asked_now(&w), "ungate:a ungate:b ");
        w.now += GANGS_WAKE_AGAIN;
        gangs_woken(&w.gs, STR("a"), true, w.now);
        ASSERT_TEXT(asked_now(&w), "ungate:a ");
        world_done(&w);
}

/* Pods of an earlier run have ended; the next run is a gang of its own. */
static void the_next_round_waits_again(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .bound = true);
        kit_put(&w.gs, w.now, "b", .mem = 6, .bound = true);
        kit_put(&w.gs, w.now, "b", .mem = 6, .bound = true, .ended = true);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_SATISFIED);
        kit_put(&w.gs, w.now, "a", .mem = 6, .bound = true, .ended = true);
        kit_put(&w.gs, w.now, "c", .mem = 6);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_WAITING);
        kit_put(&w.gs, w.now, "d", .mem = 6);
        ASSERT_TEXT(asked_now(&w), "kick:c kick:d ");
        /* Those that ended do not count beside the first one that is bound. */
        ASSERT_INT(bind_to(&w, "c", filter(&w, "c", NULL)), GANGS_HOLD);
        ASSERT_INT(bind_to(&w, "d", filter(&w, "d", NULL)), GANGS_HOLD);
        gangs_bind_ended(&w.gs, STR("c"), true, w.now);
        gangs_bind_ended(&w.gs, STR("d"), false, w.now);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_REPAIR);
        ASSERT_FALSE(gang_table_find(&w.gs.table, STR("c"))->gang->whole);
        world_done(&w);
}

/* The watch of a new process has the ended pods of an earlier round, too. */
static void pods_that_ended_before_the_process_do_not_count(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .bound = true, .ended = true);
        kit_put(&w.gs, w.now, "b", .mem = 6, .bound = true, .ended = true);
        kit_put(&w.gs, w.now, "c", .mem = 6, .bound = true);
        ASSERT_INT(state_of_gang(&w, "g"), GANG_REPAIR);
        world_done(&w);
}

/* The member of the attempt is lost, and its gang with it. */
static void without_memory_the_attempt_ends(void) {
        RequestContainer container = {.mem = 6};
        Request request = {.mem = 6, .cards = 1, .containers = &container, .n_containers = 1};
        GangPod pod = {.namespace_ = STR("default"),
                       .name = STR("a"),
                       .uid = STR("a"),
                       .gang = STR("g"),
                       .min = STR("1"),
                       .scheduler = STR("ours"),
                       .request = &request};
        World w;

        world_init(&w, 2, 1);
        for (unsigned n = 1;; n++) {
                int r;

                (void) asked_now(&w);
                countdown = n;
                r = gangs_pod(&w.gs, &pod, w.now);
                if (countdown > 0) {
                        countdown = 0;
                        break;
                }
                ASSERT_INT(r, -ENOMEM);
                ASSERT_TRUE(!w.gs.table.gangs && !w.gs.table.members);
        }
        (void) asked_now(&w);
        ASSERT_TRUE(w.gs.assembling);
        countdown = 1;
        ASSERT_INT(gangs_pod(&w.gs, &pod, w.now), -ENOMEM);
        ASSERT_TRUE(!w.gs.table.gangs && !w.gs.assembling);
        world_done(&w);
}

static void kube_scheduler_restarts(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6);
        (void) asked_now(&w);
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        gangs_bind_ended(&w.gs, STR("a"), false, w.now); /* the connection was closed */
        ASSERT_FALSE(gang_table_find(&w.gs.table, STR("a"))->held);
        ASSERT_INT(bind_to(&w, "b", filter(&w, "b", NULL)), GANGS_HOLD);
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_INT(bind_to(&w, "a", filter(&w, "a", NULL)), GANGS_HOLD);
        ASSERT_TEXT(asked_now(&w), "release:a release:b ");
        world_done(&w);
}

/* ---- bad input ---- */

static void explains_what_is_wrong(void) {
        World w;

        world_init(&w, 4, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .priority = 1);
        kit_put(&w.gs, w.now, "b", .mem = 6, .priority = 10);
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_TEXT(filter(&w, "a", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: members have priorities 1 and 10, must be equal");
        kit_put(&w.gs, w.now, "b", .mem = 6, .priority = 1, .min = "many");
        ASSERT_TEXT(filter(&w, "a", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: min-available must be a number from 1 to 1024");
        kit_put(&w.gs, w.now, "b", .mem = 6, .priority = 1, .min = "3");
        ASSERT_TEXT(filter(&w, "a", NULL), "no");
        ASSERT_TEXT(w.why, "gang g waits for members: 2 of 3");
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_TEXT(told, "GangWaiting gang g: min-available differs between members; 3 counts");
        kit_put(&w.gs, w.now, "c", .mem = 6, .priority = 1, .min = "3", .scheduler = "other");
        ASSERT_TEXT(filter(&w, "a", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: 2 of 3 members; 1 name another scheduler");
        kit_put(&w.gs, w.now, "c", .mem = 6, .priority = 1, .min = "3", .gated_else = true);
        ASSERT_TEXT(filter(&w, "a", NULL), "no");
        ASSERT_TEXT(w.why, "gang g: 2 of 3 members; 1 have another gate");
        kit_put(&w.gs, w.now, "c", .mem = 6, .priority = 1, .min = "3", .gated = true);
        ASSERT_TRUE(strstr(asked_now(&w), "ungate:c "));
        world_done(&w);
}

static void says_for_what_it_waits(void) {
        World w;

        world_init(&w, 4, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .min = "3");
        w.now += 9 * USEC_PER_SEC;
        (void) asked_now(&w);
        ASSERT_TEXT(told, "");
        kit_put(&w.gs, w.now, "b", .mem = 6, .min = "3");
        w.now += USEC_PER_SEC;
        (void) asked_now(&w);
        ASSERT_TEXT(told, "GangWaiting gang g waits for members: 2 of 3");
        told[0] = '\0';
        gangs_pod_gone(&w.gs, STR("b"), w.now);
        w.now += 9 * USEC_PER_SEC;
        (void) asked_now(&w);
        ASSERT_TEXT(told, "");
        w.now += USEC_PER_SEC;
        (void) asked_now(&w);
        ASSERT_TEXT(told, "GangWaiting gang g waits for members: 1 of 3");
        told[0] = '\0';
        w.now += 599 * USEC_PER_SEC; /* the same words */
        (void) asked_now(&w);
        ASSERT_TEXT(told, "");
        w.now += USEC_PER_SEC;
        (void) asked_now(&w);
        ASSERT_TEXT(told, "GangWaiting gang g waits for members: 1 of 3");
        world_done(&w);
}

static void two_namespaces_are_two_gangs(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6);
        kit_put(&w.gs, w.now, "b", .mem = 6, .namespace_ = "second");
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_INT(HASH_COUNT(w.gs.table.gangs), 2);
        world_done(&w);
}

static void pods_of_other_schedulers_are_left_alone(void) {
        World w;

        world_init(&w, 2, 1);
        kit_put(&w.gs, w.now, "a", .mem = 6, .scheduler = "volcano");
        kit_put(&w.gs, w.now, "b", .mem = 6, .scheduler = "volcano");
        kit_put(&w.gs, w.now, "x1", .gang = "x", .mem = 6, .scheduler = "volcano", .bound = true);
        kit_put(&w.gs, w.now, "x2", .gang = "x", .mem = 6, .scheduler = "volcano");
        w.now += 100 * USEC_PER_SEC;
        ASSERT_TEXT(asked_now(&w), "");
        ASSERT_TEXT(told, "");
        gangs_pod_gone(&w.gs, STR("x1"), w.now);
        gangs_pod_gone(&w.gs, STR("x2"), w.now);
        gangs_know_scheduler(&w.gs, STR("volcano"), w.now);
        ASSERT_TEXT(asked_now(&w), "kick:a kick:b ");
        world_done(&w);
}

static void without_min_available_each_pod_is_single(void) {
        World w;

        world_init(&w, 2, 1);
        ASSERT_OK(gangs_pod(&w.gs,
                            &(GangPod){.namespace_ = STR("default"),
                                       .name = STR("a"),
                                       .uid = STR("a"),
                                       .gang = STR("g"),
                                       .scheduler = STR("ours")},
                            w.now));
        ASSERT_TEXT(filter(&w, "a", NULL), "free");
        ASSERT_INT(bind_to(&w, "a", "n1"), GANGS_FREE);
        ASSERT_TEXT(asked_now(&w), "");
        world_done(&w);
}

static void reasons_are_short_and_no_formats(void) {
        static const char name[] = "a-name-of-a-gang-that-is-as-long-as-a-label-may-be-0123456789%d";
        World w;

        world_init(&w, 1, 1);
        kit_put(&w.gs, w.now, "a", .gang = name, .mem = 6, .priority = -2147483647, .min = "1024");
        kit_put(&w.gs, w.now, "b", .gang = name, .mem = 6, .priority = 2147483647, .min = "1024");
        ASSERT_TEXT(filter(&w, "a", NULL), "no");
        ASSERT_TRUE(strlen(w.why) <= REFUSAL_REASON_MAX);
        ASSERT_FALSE(strchr(w.why, '%'));
        world_done(&w);
}

int main(void) {
        return TEST_MAIN(
                TEST(holds_until_all_are_there), TEST(members_without_cards_count),
                TEST(later_members_are_single_pods), TEST(one_gang_at_a_time), TEST(who_waits_longer_is_next),
                TEST(priority_goes_before_age), TEST(gives_up_when_nothing_is_offered),
                TEST(gives_up_on_a_busy_cluster), TEST(waits_longer_after_each_failure),
                TEST(gives_up_at_the_end_of_its_time), TEST(gives_up_when_a_member_is_unschedulable),
                TEST(gives_up_when_members_are_deleted), TEST(gives_up_when_leadership_ends),
                TEST(gives_up_when_a_card_goes), TEST(all_or_nothing),
                TEST(too_large_for_the_cluster_is_not_tried), TEST(is_judged_again_when_its_members_change),
                TEST(moves_a_place), TEST(wakes_the_member_that_fits_a_freed_place),
                TEST(wakes_the_member_that_was_offered_the_node), TEST(wakes_none_that_does_not_fit),
                TEST(learns_which_nodes_suit), TEST(repairs_what_is_half_bound),
                TEST(a_binding_that_fails_is_repaired), TEST(a_binding_under_way_has_no_second_place),
                TEST(a_binding_under_way_is_no_room), TEST(refused_bindings_wait_longer_each_time),
                TEST(refused_patches_become_rarer), TEST(once_satisfied_stays_so),
                TEST(after_a_restart_a_reduced_gang_is_whole), TEST(a_gate_stays_until_its_patch_is_good),
                TEST(a_kick_that_failed_is_repeated), TEST(a_patch_is_repeated_within_the_attempt),
                TEST(a_slow_patch_is_not_repeated), TEST(the_next_round_waits_again),
                TEST(pods_that_ended_before_the_process_do_not_count), TEST(without_memory_the_attempt_ends),
                TEST(kube_scheduler_restarts), TEST(explains_what_is_wrong), TEST(says_for_what_it_waits),
                TEST(two_namespaces_are_two_gangs), TEST(pods_of_other_schedulers_are_left_alone),
                TEST(without_min_available_each_pod_is_single), TEST(reasons_are_short_and_no_formats));
}
