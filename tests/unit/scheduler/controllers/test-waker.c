/* SPDX-License-Identifier: Apache-2.0 */

/* The waker beside an API server that answers as the test says. Its turns come by real timers,
 * which the tests wait for. */

#include "fake_api.h"
#include "fixture.h"
#include "scheduler/controllers/waker.h"

enum { CARD = 15 };

typedef struct Fixture {
        sd_event *event;
        View *view;
        SchedulerContext context;
        Waker *waker;
} Fixture;

/* A node with an empty card, and a pod that fits there and that no node took when filter was
 * asked. */
static void setup(Fixture *f) {
        *f = (Fixture){0};
        ASSERT_TRUE(sd_event_new(&f->event) >= 0);
        ASSERT_OK(view_new(&f->view));
        feed(f->view, VIEW_NODES, REFLECTOR_ADDED, node_json("n1", "cgpu", CARD, 1, ""));
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("p", .mem = "6", .phase = "Pending", .state = "waiting"));
        f->context = (SchedulerContext){.client = fake_client(f->event), .view = f->view};
        ASSERT_OK(waker_new(&f->context, 0, &f->waker));
        pending_note(&f->context.pending, STR("default"), STR("p"), STR("uid-p"));
}

static void teardown(Fixture *f) {
        waker_free(f->waker);
        pending_done(&f->context.pending);
        ASSERT_INT(fake_n_calls(), 0);
        view_free(f->view);
        sd_event_unref(f->event);
}

static PendingPod *waiting(Fixture *f) {
        return pending_find(&f->context.pending, STR("uid-p"));
}

static void answer_wake(Fixture *f, unsigned status) {
        for (int i = 0; i < 1000 && !fake_call(FAKE_PATCH); i++)
                ASSERT_TRUE(sd_event_run(f->event, 100 * USEC_PER_MSEC) >= 0);
        ASSERT_TRUE(fake_call(FAKE_PATCH));
        ASSERT_TEXT(fake_name(fake_call(FAKE_PATCH)), "/api/v1/namespaces/default/pods/p");
        fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, status, "");
}

/* Runs the turns that are left. */
static void expect_no_wake(Fixture *f) {
        while (sd_event_run(f->event, 2 * USEC_PER_SEC) > 0)
                ASSERT_FALSE(fake_call(FAKE_PATCH));
}

static void tell_settled(Fixture *f) {
        waiting(f)->waits_for_plan = true;
        waker_settled(f->waker);
}

static void a_pod_is_woken_once_for_room(void) {
        Fixture f;

        setup(&f);
        waker_room(f.waker, STR("n1"));
        answer_wake(&f, 200);
        expect_no_wake(&f);
        teardown(&f);
}

static void a_failed_wake_is_repeated(void) {
        Fixture f;

        setup(&f);
        tell_settled(&f);
        answer_wake(&f, 429);
        answer_wake(&f, 409);
        answer_wake(&f, 200);
        expect_no_wake(&f);
        waker_room(f.waker, STR("n1"));
        answer_wake(&f, 409);
        answer_wake(&f, 503);
        answer_wake(&f, 200);
        expect_no_wake(&f);
        teardown(&f);
}

/* Its name has another UID by now. */
static void a_conflict_of_a_pod_that_is_gone_is_not_repeated(void) {
        Fixture f;

        setup(&f);
        tell_settled(&f);
        feed(f.view, VIEW_PODS, REFLECTOR_DELETED, pod_json("p", .phase = "Pending", .state = "waiting"));
        answer_wake(&f, 409);
        expect_no_wake(&f);
        teardown(&f);
}

/* It asks for no cards, so that the watch has no request of it. */
static void a_pod_without_cards_waits_for_the_gang_alone(void) {
        Fixture f;

        setup(&f);
        feed(f.view, VIEW_PODS, REFLECTOR_MODIFIED, pod_json("p", .phase = "Pending", .state = "waiting"));
        waiting(&f)->waits_for_plan = true;
        waker_room(f.waker, STR("n1"));
        expect_no_wake(&f);
        ASSERT_TRUE(waiting(&f));
        waker_settled(f.waker);
        answer_wake(&f, 200);
        waker_room(f.waker, STR("n1"));
        expect_no_wake(&f);
        ASSERT_TRUE(!waiting(&f));
        teardown(&f);
}

/* The pod was refused after the first of two wakes. */
static void room_after_the_end_of_a_gang_wakes_again(void) {
        Fixture f;

        setup(&f);
        tell_settled(&f);
        answer_wake(&f, 200);
        waker_room(f.waker, STR("n1"));
        answer_wake(&f, 200);
        teardown(&f);
}

static void room_soon_after_a_wake_is_not_forgotten(void) {
        Fixture f;

        setup(&f);
        waker_room(f.waker, STR("n1"));
        answer_wake(&f, 200);
        waiting(&f)->woken = clock_monotonic_usec() - WAKER_AGAIN + 2 * USEC_PER_SEC;
        waker_room(f.waker, STR("n1"));
        answer_wake(&f, 200);
        teardown(&f);
}

/* kube-scheduler saw the end of another pod first, and asked about this one too early. */
static void a_pod_that_was_asked_about_too_early_is_woken(void) {
        Fixture f;

        setup(&f);
        waiting(&f)->seen = clock_monotonic_usec();
        waker_pod_ended(f.waker);
        answer_wake(&f, 503);
        answer_wake(&f, 200);
        waker_pod_ended(f.waker); /* once for each question */
        expect_no_wake(&f);
        waiting(&f)->seen = clock_monotonic_usec();
        waker_pod_ended(f.waker);
        answer_wake(&f, 200);
        waiting(&f)->seen = clock_monotonic_usec() + USEC_PER_SEC; /* it asks by itself */
        waker_pod_ended(f.waker);
        expect_no_wake(&f);
        teardown(&f);
}

static void a_pod_that_fits_nowhere_is_not_woken(void) {
        Fixture f;

        setup(&f);
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED, pod_json("other", .mem = "12", .node = "n1"));
        waker_pod_ended(f.waker);
        expect_no_wake(&f);
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(
                TEST(a_pod_is_woken_once_for_room), TEST(a_pod_without_cards_waits_for_the_gang_alone),
                TEST(a_failed_wake_is_repeated), TEST(a_conflict_of_a_pod_that_is_gone_is_not_repeated),
                TEST(room_after_the_end_of_a_gang_wakes_again), TEST(room_soon_after_a_wake_is_not_forgotten),
                TEST(a_pod_that_was_asked_about_too_early_is_woken),
                TEST(a_pod_that_fits_nowhere_is_not_woken));
}
