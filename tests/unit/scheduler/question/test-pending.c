/* SPDX-License-Identifier: Apache-2.0 */

/* The table of pods that wait: its bounds, and when it forgets. */

#include "fixture.h"
#include "scheduler/question/pending.h"

typedef struct Fixture {
        View *view;
        Pending pending;
} Fixture;

static void on_news(void *userdata) {
}

static void on_pod(void *userdata, const Pod *pod, Str object, ReflectorEvent event) {
        Fixture *f = userdata;

        pending_pod(&f->pending, f->view, pod, event);
}

static void setup(Fixture *f) {
        *f = (Fixture){.pending = {.on_news = on_news}};
        ASSERT_OK(view_new(&f->view));
        f->view->on_pod = on_pod;
        f->view->userdata = f;
}

static void teardown(Fixture *f) {
        pending_done(&f->pending);
        for (size_t i = 0; i < PENDING_TRIES_MAX; i++)
                ASSERT_FALSE(f->pending.tries[i]);
        view_free(f->view);
}

static PendingPod *waiting(const Fixture *f, const char *uid) {
        return pending_find(&f->pending, str_from(uid));
}

/* The watch has the pod, and so many nodes refuse it for their cards. */
static void refused_for_cards(Fixture *f, const char *uid, int priority, size_t nodes) {
        FilterResult result = {.uid = str_from(uid),
                               .namespace_ = STR("default"),
                               .name = STR("p"),
                               .request = &(Request){0},
                               .n_for_cards = nodes};

        feed(f->view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("p", .uid = uid, .mem = "1", .phase = "Pending", .priority = priority));
        for (size_t i = 0; i < nodes; i++)
                result.for_cards[i] = STR("n");
        ASSERT_TRUE(pending_filtered(&f->pending, f->view, &result, 1));
}

static void tries_are_bounded(void) {
        char uid[32];
        Fixture f;
        size_t n = 0;

        setup(&f);
        for (unsigned i = 0; i <= PENDING_TRIES_MAX; i++) {
                (void) snprintf(uid, sizeof uid, "u%u", i);
                refused_for_cards(&f, uid, (int) i, FILTER_RESULT_NODES_MAX);
        }
        /* The pod of the lowest priority made room. */
        ASSERT_TRUE(waiting(&f, "u0")->due == 0);
        ASSERT_TRUE(waiting(&f, "u64")->due > 0);
        refused_for_cards(&f, "low", 0, 1);
        ASSERT_TRUE(waiting(&f, "low")->due == 0);
        for (size_t i = 0; i < waiting(&f, "u1")->nodes.len; i++)
                n += waiting(&f, "u1")->nodes.data[i] == '\n';
        ASSERT_INT(n, FILTER_RESULT_NODES_MAX);
        ASSERT_STR(pending_next(&f.pending, 1 + PENDING_DELAY, 0)->uid, STR("u64"));
        ASSERT_TRUE(pending_next(&f.pending, 1 + PENDING_STALE, 0) == NULL);
        ASSERT_FALSE(pending_any(&f.pending));
        teardown(&f);
}

/* Its wake would be lost with the note. */
static void a_pod_that_waits_for_a_gang_is_not_dropped(void) {
        Fixture f;

        setup(&f);
        pending_note(&f.pending, STR("default"), STR("first"), STR("first"))->waits_for_plan = true;
        for (unsigned i = 0; i < PENDING_MAX; i++) {
                char uid[16];

                (void) snprintf(uid, sizeof uid, "uid-%u", i);
                pending_note(&f.pending, STR("default"), str_from(uid), str_from(uid));
        }
        ASSERT_INT(HASH_COUNT(f.pending.by_uid), PENDING_MAX);
        ASSERT_TRUE(waiting(&f, "first"));
        ASSERT_FALSE(waiting(&f, "uid-0"));
        teardown(&f);
}

/* Pods that are created faster than they can be placed, some of which come and go meanwhile: the
 * table holds the last that were asked about, whole. */
static void a_hundred_thousand_pods(void) {
        enum { PODS = 100000, ENDED = 1000 };
        char uid[32];
        Fixture f;

        setup(&f);
        for (unsigned i = 0; i < PODS; i++) {
                FilterResult result = {.uid = str_from(uid),
                                       .namespace_ = STR("default"),
                                       .name = STR("p"),
                                       .request = &(Request){0},
                                       .n_for_cards = 1,
                                       .for_cards = {STR("n")}};

                result.uid.len = (size_t) snprintf(uid, sizeof uid, "uid-%u", i);
                if (i % (PODS / 100) == 0)
                        refused_for_cards(&f, uid, (int) (i % 7), 1);
                else
                        ASSERT_TRUE(pending_filtered(&f.pending, f.view, &result, 1 + i));
        }
        ASSERT_INT(HASH_COUNT(f.pending.by_uid), PENDING_MAX);
        for (unsigned i = PODS - PENDING_MAX; i < PODS; i++) {
                (void) snprintf(uid, sizeof uid, "uid-%u", i);
                ASSERT_TRUE(waiting(&f, uid) && waiting(&f, uid)->refused);
        }
        for (size_t i = 0; i < PENDING_TRIES_MAX; i++)
                ASSERT_TRUE(!f.pending.tries[i] ||
                            pending_find(&f.pending, f.pending.tries[i]->uid) == f.pending.tries[i]);
        for (unsigned i = PODS - ENDED; i < PODS; i++) {
                (void) snprintf(uid, sizeof uid, "uid-%u", i);
                feed(f.view, VIEW_PODS, REFLECTOR_DELETED,
                     pod_json("p", .uid = uid, .mem = "1", .phase = "Pending"));
        }
        ASSERT_INT(HASH_COUNT(f.pending.by_uid), PENDING_MAX - ENDED);
        teardown(&f);
}

static void what_the_watch_shows_ends_the_waiting(void) {
        static const struct {
                const char *node, *phase;
                bool terminating;
                ReflectorEvent event;
                bool stays;
        } cases[] = {
                {NULL, "Pending", false, REFLECTOR_MODIFIED, true},
                {"n1", "Pending", false, REFLECTOR_MODIFIED, false},
                {NULL, "Failed", false, REFLECTOR_MODIFIED, false},
                {NULL, "Pending", true, REFLECTOR_MODIFIED, false},
                {NULL, "Pending", false, REFLECTOR_DELETED, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f;

                setup(&f);
                refused_for_cards(&f, "u", 1, 1);
                ASSERT_TRUE(pending_any(&f.pending));
                feed(f.view, VIEW_PODS, cases[i].event,
                     pod_json("p", .uid = "u", .mem = "1", .node = cases[i].node, .phase = cases[i].phase,
                              .terminating = cases[i].terminating, .priority = 1));
                ASSERT_INT(waiting(&f, "u") != NULL, cases[i].stays);
                ASSERT_INT(pending_any(&f.pending), cases[i].stays);
                teardown(&f);
        }
}

/* A pod without cards is in the table for its gang alone: the watch has no request of it. */
static void a_pod_without_cards_waits_until_it_is_bound(void) {
        const char *pending = pod_json("p", .uid = "u", .phase = "Pending"),
                   *bound = pod_json("p", .uid = "u", .phase = "Pending", .node = "n1");
        Fixture f;

        setup(&f);
        pending_note(&f.pending, STR("default"), STR("p"), STR("u"))->waits_for_plan = true;
        pending_note(&f.pending, STR("default"), STR("q"), STR("v"));
        feed(f.view, VIEW_PODS, REFLECTOR_MODIFIED, pending);
        pending_listed(&f.pending, f.view);
        ASSERT_TRUE(waiting(&f, "u"));
        ASSERT_FALSE(waiting(&f, "v"));
        feed(f.view, VIEW_PODS, REFLECTOR_MODIFIED, bound);
        ASSERT_FALSE(waiting(&f, "u"));
        teardown(&f);
}

/* What it was told, and since when it waits, are kept: the node may be taken by another pod. */
static void a_pod_that_fits_keeps_its_entry(void) {
        Fixture f;

        setup(&f);
        refused_for_cards(&f, "u", 1, 1);
        waiting(&f, "u")->deferred = 7;
        waiting(&f, "u")->attempt = 2;
        ASSERT_TRUE(pending_filtered(&f.pending, f.view,
                                     &(FilterResult){.uid = STR("u"), .request = &(Request){0}, .fits = true},
                                     1));
        ASSERT_FALSE(waiting(&f, "u")->refused || pending_any(&f.pending));
        ASSERT_INT(waiting(&f, "u")->deferred, 7);
        ASSERT_INT(waiting(&f, "u")->attempt, 2);
        ASSERT_FALSE(pending_filtered(
                &f.pending, f.view, &(FilterResult){.uid = STR("v"), .request = &(Request){0}, .fits = true},
                1));
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(TEST(tries_are_bounded), TEST(a_pod_that_waits_for_a_gang_is_not_dropped),
                         TEST(a_hundred_thousand_pods), TEST(what_the_watch_shows_ends_the_waiting),
                         TEST(a_pod_without_cards_waits_until_it_is_bound),
                         TEST(a_pod_that_fits_keeps_its_entry));
}
