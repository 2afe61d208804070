/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

static void gets_and_binds(void) {
        KubeBinding binding = {.namespace_ = STR("default"),
                               .name = STR("a"),
                               .node = STR("n1"),
                               .annotations = STR("{\"k\":\"v\"}")};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        apply_node(&f, "n1");
        apply_pod(&f, "a");
        ASSERT_OK(kube_bind(f.client, &binding, on_answer, &a, NULL));
        ASSERT_INT(a.n, 0); /* never before the call returns */
        TURN_UNTIL(&f, a.n == 1);
        ASSERT_INT(a.status, 201);
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 2);
        ASSERT_INT(a.status, 200);
        ASSERT_CONTAINS(a.body, "\"nodeName\":\"n1\"");
        ASSERT_CONTAINS(a.body, "\"k\":\"v\"");
        ASSERT_OK(kube_bind(f.client, &binding, on_answer, &a, NULL)); /* bound already */
        TURN_UNTIL(&f, a.n == 3);
        ASSERT_INT(a.outcome, KUBE_DONE);
        ASSERT_INT(a.status, 409);
        ASSERT_TEXT(a.reason, "Conflict");
        ASSERT_CONTAINS(a.fault.text, "POST /api/v1/namespaces/default/pods/a/binding: HTTP 409 Conflict: ");
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("none"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 4);
        ASSERT_INT(a.status, 404);
        ASSERT_TEXT(a.reason, "NotFound");
        ASSERT_FALSE(kube_reply_is_transient(&(KubeReply){.outcome = a.outcome, .status = a.status}));
        fixture_end(&f);
}

static void patches_with_a_precondition(void) {
        Answer a = {0};
        Fixture f;
        char version[64];
        const char *path = "/api/v1/namespaces/default/pods/a", *at;

        fixture_begin(&f, 0);
        apply_pod(&f, "a");
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 1);
        at = strstr(a.body, "\"resourceVersion\":\"");
        ASSERT_TRUE(at != NULL);
        (void) snprintf(version, sizeof version, "%.*s", (int) strcspn(at + 19, "\""), at + 19);
        ASSERT_OK(kube_merge_patch(f.client, path, "", STR("{\"metadata\":{\"annotations\":{\"x\":\"1\"}}}"),
                                   str_from(version), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 2);
        ASSERT_INT(a.status, 200);
        /* The object has moved on: the same version again is a conflict, and no version is not. */
        ASSERT_OK(kube_merge_patch(f.client, path, "", STR("{\"metadata\":{\"annotations\":{\"x\":\"2\"}}}"),
                                   str_from(version), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 3);
        ASSERT_INT(a.status, 409);
        ASSERT_OK(kube_merge_patch(f.client, path, "status", STR("{\"status\":{\"phase\":\"Running\"}}"),
                                   STR(""), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 4);
        ASSERT_INT(a.status, 200);
        ASSERT_CONTAINS(a.body, "\"Running\"");
        ASSERT_OK(kube_merge_patch(f.client, path, "status", STR("{\"status\":{\"phase\":\"Failed\"}}"),
                                   str_from(version), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 5);
        ASSERT_INT(a.status, 409);
        fixture_end(&f);
}

static void tells_the_three_outcomes_apart(void) {
        static const StoreFault busy = {
                .kind = STORE_FAULT_STATUS, .count = 1, .status = 429, .retry_after = 3};
        static const StoreFault broken = {.kind = STORE_FAULT_STATUS, .count = 1, .status = 500};
        static const StoreFault lost = {.kind = STORE_FAULT_LOSE_ANSWER, .method = "POST", .count = 9};
        KubeBinding binding = {.namespace_ = STR("default"), .name = STR("a"), .node = STR("n1")};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        apply_node(&f, "n1");
        apply_pod(&f, "a");
        ASSERT_OK(store_inject(f.store, &busy));
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 1);
        ASSERT_INT(a.status, 429);
        ASSERT_TRUE(a.retry_after == 3 * USEC_PER_SEC);
        ASSERT_TRUE(kube_reply_is_transient(&(KubeReply){.outcome = a.outcome, .status = a.status}));
        ASSERT_OK(store_inject(f.store, &broken));
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 2);
        ASSERT_INT(a.status, 500);

        ASSERT_OK(store_inject(f.store, &lost));
        ASSERT_OK(kube_bind(f.client, &binding, on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 3);
        ASSERT_INT(a.outcome, KUBE_UNKNOWN);
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 4);
        ASSERT_CONTAINS(a.body, "\"nodeName\":\"n1\""); /* it had been carried out */

        ASSERT_OK(store_vanish(f.store, true));
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 5);
        ASSERT_INT(a.outcome, KUBE_NOT_SENT);
        ASSERT_CONTAINS(a.fault.text, "GET /api/v1/namespaces/default/pods/a: ");
        ASSERT_OK(store_vanish(f.store, false));
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 6);
        ASSERT_INT(a.status, 200);
        fixture_end(&f);
}

static void a_slow_answer_is_unknown(void) {
        static const StoreFault slow = {
                .kind = STORE_FAULT_DELAY, .method = "POST", .count = 1, .delay_usec = 2000000};
        KubeRequest request = {
                .method = "POST",
                .path = "/api/v1/nodes",
                .timeout = 100000,
                .body = STR("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}")};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        ASSERT_OK(store_inject(f.store, &slow));
        ASSERT_OK(kube_call(f.client, &request, on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 1);
        ASSERT_INT(a.outcome, KUBE_UNKNOWN);
        ASSERT_CONTAINS(a.fault.text, "it may have been carried out");
        fixture_end(&f);
}

typedef struct Chain {
        Fixture *f;
        KubeCall *other;
        unsigned done;
} Chain;

static void on_never(void *userdata, const KubeReply *reply) {
        TEST_FAIL_("a cancelled call answered");
}

static void on_first(void *userdata, const KubeReply *reply) {
        Chain *c = userdata;

        c->done++;
        c->other = kube_call_free(c->other);
        if (c->done < 3)
                ASSERT_OK(kube_get_pod(c->f->client, STR("default"), STR("a"), on_first, c, NULL));
        else
                c->f->client =
                        kube_client_free(c->f->client); /* inside its own callback, with calls in flight */
}

static void calls_are_made_cancelled_and_freed_inside_callbacks(void) {
        Chain c = {0};
        Fixture f;

        fixture_begin(&f, 0);
        c.f = &f;
        apply_pod(&f, "a");
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_first, &c, NULL));
        ASSERT_OK(store_inject(f.store, &(StoreFault){.kind = STORE_FAULT_DELAY,
                                                      .path_prefix = "/api/v1/nodes",
                                                      .count = 5,
                                                      .delay_usec = 500000}));
        ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/nodes"}, on_never,
                            NULL, &c.other));
        ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/nodes/x"}, on_never,
                            NULL, NULL));
        TURN_UNTIL(&f, !f.client);
        ASSERT_INT(c.done, 3);
        fixture_end(&f);
}

static void events_are_counted_not_repeated(void) {
        KubeEventRecorder *r = NULL;
        KubeEvent event = {.kind = "Pod",
                           .namespace_ = STR("default"),
                           .name = STR("a"),
                           .uid = STR("u"),
                           .type = "Warning",
                           .reason = "Refused",
                           .note = "no \"room\""};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        ASSERT_OK(kube_event_recorder_new(f.client, "test", &r));
        kube_event(r, &event);
        for (unsigned wanted = 1; !strstr(a.body, "\"count\":1"); wanted++) {
                ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/events"},
                                    on_answer, &a, NULL));
                TURN_UNTIL(&f, a.n == wanted);
        }
        ASSERT_CONTAINS(a.body, "no \\\"room\\\"");
        kube_event(r, &event);
        for (unsigned wanted = a.n + 1; !strstr(a.body, "\"count\":2"); wanted++) {
                ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/events"},
                                    on_answer, &a, NULL));
                TURN_UNTIL(&f, a.n == wanted);
        }
        ASSERT_TRUE(!strstr(strstr(a.body, "\"involvedObject\"") + 1, "\"involvedObject\"")); /* one Event */
        (void) kube_event_recorder_free(r);
        fixture_end(&f);
}

int main(void) {
        return TEST_MAIN(TEST(gets_and_binds), TEST(patches_with_a_precondition),
                         TEST(tells_the_three_outcomes_apart), TEST(a_slow_answer_is_unknown),
                         TEST(calls_are_made_cancelled_and_freed_inside_callbacks),
                         TEST(events_are_counted_not_repeated));
}
